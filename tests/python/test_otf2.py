# SPDX-License-Identifier: BSD-3-Clause
"""OTF2 archives, read back by otf2-print: what is in them, and how often."""

import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from conftest import PROGRAMS, assert_one_line_error, captured, offpath, succeeded
from offpath.base.errors import UserError
from offpath.launch import mpis
from offpath.telemetry import operations, otf2_export, perfetto
from offpath.trace import record
from telemetry_support import MS, PLACE, one_sided_lines, part, rank_lines, region_lines
from test_call_sites import traced

pytest.importorskip("otf2", reason="make setup installs it")
EVENT = re.compile(r"^([A-Z][A-Z_]+) +(\d+) +(\d+) *(.*)$")


def printed(archive, *options):
    if shutil.which("otf2-print") is None:
        pytest.skip("there is no otf2-print (a reader that is not ours). Install otf2-tools")
    result = captured(["otf2-print", *options, archive])
    assert result.returncode == 0 and "ERROR" not in result.stdout + result.stderr, result.stderr
    return result.stdout


def checked_events(archive):
    """(kind, location, time, text), in the archive's order. Times never go back, and what is entered is left."""
    found, last, stacks = [], {}, {}
    for line in printed(archive).splitlines():
        if not (match := EVENT.match(line)):
            continue
        kind, location, time, text = match[1], int(match[2]), int(match[3]), match[4]
        assert last.get(location, 0) <= time, line
        last[location] = time
        stack = stacks.setdefault(location, [])
        if kind == "ENTER":
            stack.append(text)
        if kind == "LEAVE":
            assert stack.pop() == text, line
        found.append((kind, location, time, text))
    assert not any(stacks.values()), stacks
    return found


def entered(events, name):
    return sum(kind == "ENTER" and f'"{name}"' in text for kind, _, _, text in events)


def message_lines(rank, start):
    """Rank 0 sends twice, once blocking; rank 1 receives from anybody with any tag, and once blocking."""
    other, kind = 1 - rank, "irecv" if rank else "isend"
    call = "Irecv" if rank else "Isend"
    first = {"op": 20, "nth": 0, "kind": kind, "bytes": 1000, "call": call, "begin_ns": start, "end_ns": start + 1000,
             "comm": 0, "root": -1 if rank else other, "tag": -1 if rank else 7, **PLACE}  # fmt: skip
    second = {"op": 21, "nth": 1, "kind": kind, "bytes": 500, "call": call[1:].capitalize(), "blocking": True,
              "begin_ns": start + 2000, "end_ns": start + 3000, "comm": 0, "root": other, "tag": 9}  # fmt: skip
    wait = {"wait": [20], "call": "Wait", "begin_ns": start + 4000, "end_ns": start + 5000, **PLACE}
    return [first, second | PLACE, wait]


@pytest.fixture
def trace(tmp_path):
    """Two ranks with a collective of each kind, messages, puts, regions; and a second thread."""
    ranks = []
    for rank in (0, 1):
        lines = region_lines(rank_lines(rank))
        lines[0] |= {"realtime_ns": 1_700_000_000 * 10**9}
        more = [*message_lines(rank, 60 * MS), *one_sided_lines(70 * MS, first=30, count=3)]
        if rank == 0:
            barrier = {"op": 40, "nth": 3, "kind": "ibarrier", "bytes": 0, "blocking": True, "call": "Barrier",
                       "begin_ns": 60 * MS + 500, "end_ns": 61 * MS, "comm": 0, "root": 0, "thread": 1}  # fmt: skip
            more.append(barrier | PLACE)
        (tmp_path / f"rank.{rank}").write_bytes(part([*lines[:-1], *more, {"end_ns": 95 * MS}]))
        ranks.append(tmp_path / f"rank.{rank}")
    run = operations.join(record.of_parts(ranks))
    perfetto.write(run, tmp_path / "trace.json")
    return tmp_path / "trace.json"


def test_an_archive_holds_what_the_trace_does(trace):
    archive = otf2_export.write(trace, trace.with_name("archive"))
    events, run = checked_events(archive), perfetto.load(trace)
    kinds = Counter(kind for kind, *_ in events)
    collectives = [each for each in run.operations if each.kind not in ("put", "isend", "irecv")]
    assert kinds["MPI_COLLECTIVE_BEGIN"] == kinds["MPI_COLLECTIVE_END"] == 3  # bcasts, and the other thread's barrier
    assert kinds["NON_BLOCKING_COLLECTIVE_REQUEST"] == len(collectives) - 3 == 4
    assert kinds["NON_BLOCKING_COLLECTIVE_COMPLETE"] == 4
    assert kinds["RMA_PUT"] == kinds["RMA_OP_COMPLETE_NON_BLOCKING"] == 6
    messages = [kinds[name] for name in ("MPI_SEND", "MPI_ISEND", "MPI_ISEND_COMPLETE", "MPI_IRECV_REQUEST",
                                         "MPI_IRECV", "MPI_RECV")]  # fmt: skip
    assert messages == [1] * 6
    (received,) = [text for kind, *_, text in events if kind == "MPI_IRECV"]
    assert "Tag: 7" in received and "Length: 1000" in received  # of the send that it got
    assert kinds["METRIC"] == len(perfetto.counters(trace)) > 0
    assert [entered(events, name) for name in ("step", "post", "output")] == [2, 2, 2]
    assert entered(events, "MPI_Ialltoall") == 2 and entered(events, "ialltoall at the service") == 2
    assert entered(events, "put at the service") == 6 and entered(events, "data") == 2
    assert kinds["ENTER"] == kinds["LEAVE"]
    assert kinds["ENTER"] == sum(
        (len(run.operations), *(len(waits) for waits in run.waits.values()), len(run.regions), 2 + 8 + 2)
    )  # two programs, at the services eight operations and two times data


def test_an_archive_says_who_and_when(trace):
    definitions = printed(otf2_export.write(trace, trace.with_name("archive")), "-G")
    assert "Ticks per Seconds: 1000000000" in definitions and "2023-11-14 22:13:20" in definitions
    found = re.findall(r'^LOCATION  .*?Name: "(.*?)" <.*?Type: (\w+)', definitions, re.MULTILINE)
    assert Counter(kind for _, kind in found) == {"CPU_THREAD": 3, "ACCELERATOR_STREAM": 6, "METRIC": 2}
    assert {"rank 0", "rank 0, thread 1", "rank 1"} <= {name for name, _ in found}
    assert re.search(r'^COMM  .*"2 ranks, 0"', definitions, re.MULTILINE)
    assert re.search(r'^SYSTEM_TREE_NODE .*"node1"', definitions, re.MULTILINE)


@pytest.mark.machine
def test_an_archive_of_a_real_run(tmp_path):
    subprocess.run(["mpicc.mpich", "-g", PROGRAMS / "traced.c", "-o", tmp_path / "program"], check=True)
    run = traced(mpis.MPICH, tmp_path, tmp_path / "program")
    succeeded(offpath("report", str(tmp_path / "t.json"), "--otf2", str(tmp_path / "archive")))
    events = checked_events(tmp_path / "archive" / "traces.otf2")
    calls = Counter(each.call for each in (*run.operations, *run.waits[0], *run.waits[1]))
    assert calls["MPI_Ialltoall"] == 8 and calls["MPI_Put"] == 168
    for call, count in calls.items():
        assert entered(events, call) == count, call
    at_service = sum(each.done_ns is not None for each in run.operations)
    lanes = [text for kind, *_, text in events if kind == "ENTER" and "at the service" in text]
    assert len(lanes) == at_service > 0


def test_what_cannot_be_written_is_one_line(trace, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    with pytest.raises(UserError, match="is there already"):
        otf2_export.write(trace, full)
    with pytest.raises(UserError, match="cannot be written"):
        otf2_export.write(trace, tmp_path / "no" / "where")
    assert_one_line_error(offpath("report", str(trace), str(trace), "--otf2", str(tmp_path / "x")), "one run")
    assert not (tmp_path / "x").exists() and list(full.iterdir()) == [full / "file"]


def test_without_otf2_it_says_so(trace, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "otf2", None)
    with pytest.raises(UserError, match="pip install otf2"):
        otf2_export.write(trace, tmp_path / "archive")
