# SPDX-License-Identifier: BSD-3-Clause
"""A trace of several nodes: every rank in it, clocks that agree, the services' times, and wires whose bytes add up."""

import json
from collections import defaultdict

import pytest
from conftest import assert_one_line_error, offpath, requires_root, succeeded
from lab_support import BLOCK, POLICY, ROUNDS, SHORTS
from offpath.lab import inventory
from offpath.telemetry import operations, perfetto
from telemetry_support import check_format

pytestmark = requires_root
NODES = 2


def check_alltoalls(run: operations.Run, size: int) -> None:
    rounds = defaultdict(list)
    for each in run.operations:
        if each.kind == "ialltoall":
            rounds[each.index].append(each)
    assert len(rounds) == ROUNDS
    for parts in rounds.values():
        assert sorted(each.rank for each in parts) == list(range(size))
        assert all(each.begin_ns <= each.started_ns <= each.first_byte_ns <= each.done_ns for each in parts)
        assert max(each.begin_ns for each in parts) <= min(each.done_ns for each in parts), "clocks do not agree"


def check_one_sided(run: operations.Run, size: int) -> None:
    for rank in range(size):
        own = [each for each in run.operations if each.rank == rank and each.kind in ("put", "get")]
        assert len(own) == ROUNDS * (2 + SHORTS)
        for each in own:
            assert (each.path, each.failed, each.last_peer) == ("dpu", False, (rank + 1) % size)
            assert each.begin_ns <= each.started_ns <= each.done_ns <= each.wait.end_ns
        assert all(each.first_byte_ns is not None for each in own if each.kind == "get")


def crossed(run: operations.Run, size: int) -> int:
    """Bytes that leave a node: an alltoall's blocks, long puts and gets to the next rank; short ones are messages."""
    host = {rank.number: rank.host for rank in run.ranks}
    apart = sum(host[one] != host[other] for one in range(size) for other in range(size))
    next_apart = sum(host[rank] != host[(rank + 1) % size] for rank in range(size))
    return ROUNDS * BLOCK * (apart + 2 * next_apart)


def bytes_of_tracks(events: list[dict], name: str) -> dict[int, float]:
    """By service, what a track of rates comes to."""
    tracks = defaultdict(list)
    for event in events:
        if event["name"] == f"fabric {name}, bytes/s":
            tracks[event["pid"]].append((event["ts"], event["args"]["bytes/s"]))
    return {
        service: sum(rate * (until - since) / 1e6 for (since, rate), (until, _) in zip(track, track[1:], strict=False))
        for service, track in tracks.items()
    }


@pytest.mark.parametrize("ppn", (1, 2))
def test_a_trace_of_two_nodes(lab, traced, ppn, tmp_path):
    mpi, argv = traced
    size, trace = NODES * ppn, tmp_path / "t.json"
    command = ["lab", "run", "--name", lab.name, "--mpi", mpi, "--ppn", str(ppn), "--offload", "--policy", POLICY]
    result = succeeded(offpath(*command, "--trace", str(trace), "--summary", "--", str(argv)))
    events = check_format(json.loads(trace.read_text()))
    run = perfetto.load(trace)
    assert [(rank.number, rank.host) for rank in run.ranks] == [(i, f"node{i // ppn + 1}") for i in range(size)]
    assert len({rank.service_pid for rank in run.ranks}) == NODES and all(not rank.reason for rank in run.ranks)
    check_alltoalls(run, size)
    check_one_sided(run, size)
    received, sent = bytes_of_tracks(events, "in"), bytes_of_tracks(events, "out")
    assert set(received) == set(sent) == {perfetto.SERVICES + node for node in range(NODES)}
    assert sum(received.values()) == pytest.approx(crossed(run, size), abs=100)  # rates are whole numbers
    assert sum(sent.values()) == pytest.approx(crossed(run, size), abs=100)

    assert f"{size} ranks on {NODES} node(s)" in result.stderr and "MPI_Put" in result.stderr
    text = offpath("report", str(trace), "--text")
    assert text.returncode == 0 and "MPI_Put" in text.stdout + text.stderr
    assert offpath("report", str(trace), "-o", str(tmp_path / "t.html")).returncode == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["t.html", "t.json"]
    assert inventory.processes(lab.name) == []
    assert [file for node in lab.plan.nodes for file in lab.plan.runtime_folder(node).glob("*.sock")] == []


def test_a_trace_of_a_native_run_is_one_line(tmp_path):
    result = offpath("lab", "run", "--trace", str(tmp_path / "t.json"), "--", "true")
    assert_one_line_error(result, "--offload", status=2)
