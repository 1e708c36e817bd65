# SPDX-License-Identifier: BSD-3-Clause
"""Traces as pandas data frames, and the notebook that shows what for."""

import sys

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient
from offpath.errors import UserError
from offpath.telemetry import frames, operations, perfetto, record
from telemetry_support import MS, write_parts

NOTEBOOK = ROOT / "docs" / "notebooks" / "trace.ipynb"


@pytest.fixture
def file(tmp_path):
    """A trace of two ranks, the second one late."""
    file = tmp_path / "trace.json"
    perfetto.write(operations.join(record.of_parts(write_parts(tmp_path, late_ns=35 * MS))), file)
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


def test_a_foreign_file_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(UserError, match="holds no recording"):
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
    assert len(shown) == 5 and "node1" in shown[0] and "ialltoall" in shown[2]
    assert not [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.get("outputs")]  # kept without
