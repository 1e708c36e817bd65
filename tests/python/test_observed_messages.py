# SPDX-License-Identifier: BSD-3-Clause
"""Messages of real runs in traces and profiles."""

import pytest
from bench_support import program
from conftest import offpath, succeeded
from offpath.launch import mpis
from offpath.plan import replay
from offpath.telemetry import operations
from offpath.trace import profile, record

REPEATS = 3
# Each kind is checked while the clock runs, and the work is given, so nothing else communicates.
EXCHANGES = 2 * REPEATS
LAUNCH = {
    "openmpi": ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "tcp,self"],
    "mpich": [],
}


def command(mpi: str, pattern: str) -> list[str]:
    argv = [str(program("bench", mpi, "pt2pt")), "--pattern", pattern, "--sizes", "64,65536", "--verify"]
    argv += ["--repeats", str(REPEATS), "--warmup", "0", "--work-iterations", "100,100"]
    return [mpis.launcher(mpi), "-np", "2", *LAUNCH[mpi], *argv]


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_trace_says_which_way_messages_went_and_when_they_were_there(mpi, tmp_path):
    trace = tmp_path / "trace.json"
    result = succeeded(offpath(
        "run", "--share", "--summary", "--policy", "*:host,send:4K-inf:dpu", "--trace", str(trace), "--",
        *command(mpi, "unexpected_any"),
    ))  # fmt: skip
    run = operations.join(record.load(trace))
    for rank in (0, 1):
        own = [each for each in run.operations if each.rank == rank]
        sent = [each for each in own if each.name == "isend" and each.bytes > 0]
        assert len(sent) == 2 * EXCHANGES
        short, long = sent[:EXCHANGES], sent[EXCHANGES:]
        assert {(each.path, each.why) for each in short} == {("host", "policy")}
        assert {(each.path, each.why, each.failed) for each in long} == {("dpu", "policy", False)}
        for each in long:
            assert each.wait is not None and each.begin_ns <= each.started_ns <= each.done_ns <= each.wait.end_ns
        received = [each for each in own if each.name == "irecv"]
        assert len(received) == 2 * EXCHANGES and all(each.wait is not None for each in received)
        assert {(each.path, each.why) for each in received} == {("host", "sender")}
        assert len([each for each in own if each.name == "recv"]) == 2 * EXCHANGES, "of the empty message behind it"
    # Collectives keep their own count, whatever the messages between them.
    collectives = [each for each in run.operations if each.kind == "iallreduce"]
    assert {each.index for each in collectives if each.rank == 0} == {each.index for each in collectives if each.rank}
    assert "isend" in result.stderr and "its sender decides" in result.stderr


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_profile_finds_the_receive_of_each_send(mpi, tmp_path):
    file = tmp_path / "profile.jsonl"
    succeeded(offpath("profile", "-o", str(file), "--", *command(mpi, "posted_any_8")))
    found = profile.load(file)
    scenario = replay.scenario(found)
    sent = [operation for operation in scenario.operations if operation["kind"] == "send"]
    assert len(sent) == 2 * 8 * 2 * EXCHANGES
    assert {operation["bytes"] for operation in sent} == {64, 65536}
    planned = offpath("plan", str(file), "--policy", "send:4K-inf:dpu", "--nodes", "2", "--ppn", "1")
    assert planned.returncode == 0 and "verdict" in planned.stdout, planned.stderr
    assert "DPU" in planned.stdout
