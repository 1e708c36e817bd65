# SPDX-License-Identifier: BSD-3-Clause
"""Traces as pandas data frames, and the notebook that shows what for."""

import sys

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient
from offpath.base.errors import UserError
from offpath.telemetry import frames, operations, perfetto
from offpath.trace import record
from telemetry_support import MS, part, rank_lines, region_lines, write_parts

NOTEBOOK = ROOT / "docs" / "notebooks" / "trace.ipynb"


@pytest.fixture
def file(tmp_path):
    """A trace of two ranks, the second one late. They name parts of themselves."""
    file = tmp_path / "trace.json"
    parts = write_parts(tmp_path, late_ns=35 * MS)
    for rank, each in enumerate(parts):
        each.write_bytes(part(region_lines(rank_lines(rank, 35 * MS * rank))))
    perfetto.write(operations.join(record.of_parts(parts)), file)
    return file


def test_frames_say_what_the_recording_does(file):
    run, trace = operations.join(record.load(file)), frames.read(file)
    assert list(trace.ranks["host"]) == ["node0", "node1"]
    assert len(trace.operations) == len(run.operations) == 6
    assert list(trace.operations.bytes) == [each.bytes for each in run.operations]
    assert trace.operations.hidden_ns.sum() == sum(each.hidden_ns for each in run.operations) > 0
    assert trace.operations.done_ns.isna().sum() == 4  # of operations on the host nobody knows
    assert trace.waits.ns.sum() == sum(wait.ns for waits in run.waits.values() for wait in waits)
    late = trace.operations[trace.operations.late_ns > 0]
    assert set(late.late_rank) == {1} and set(late["rank"]) == {0}


def test_frames_say_where(file):
    trace = frames.read(file)
    assert list(trace.operations["call"]) == ["MPI_Bcast", "MPI_Ialltoall", "MPI_Iallgather"] * 2
    assert set(trace.operations.site) == {"app+0x40"} and trace.operations.line.isna().all()
    assert list(trace.operations.region.fillna("")) == ["", "step/post", "step/post"] * 2
    assert list(trace.waits.region.fillna("")) == ["step", ""] * 2
    assert list(trace.regions.path) == ["step", "step/post", "output"] * 2
    assert list(trace.regions.left_open) == [False, False, True] * 2
    assert trace.regions.ns.sum() == sum(trace.regions.end_ns - trace.regions.begin_ns) > 0


def test_a_foreign_file_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(UserError, match="is no trace of Offpath"):
        frames.read(tmp_path / "x.json")


def test_without_pandas_it_says_so(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="pandas is not installed"):
        frames.read(file)


def test_the_notebook_runs(file, monkeypatch):
    monkeypatch.setenv("TRACE", str(file))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=100, kernel_name="python3").execute()  # raises what a cell raises
    shown = [str(output) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert len(shown) == 7 and "node1" in shown[0] and "MPI_Ialltoall" in shown[2]
    assert all(words in shown[5] for words in ("step/post", "waited_ms"))
    assert not [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.get("outputs")]  # kept without
