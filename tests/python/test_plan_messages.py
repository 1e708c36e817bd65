# SPDX-License-Identifier: BSD-3-Clause
"""Messages in profiles: who receives what, what offloading them is predicted to gain, and what is refused."""

import json

import pytest
from conftest import require
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.plan import machine, model, predict, replay
from offpath.trace import messages, profile

PLACE = {"file": "/nowhere/app", "offset": 64}
ROW = ("send:512K-inf:dpu",)


@pytest.fixture(autouse=True)
def built():
    require(paths().prefix / "bin" / "offpath-model")


def posted(op: int, kind: str, other: int, tag: int = 1, size: int = 2 << 20, at: int = 1000, **more) -> dict:
    call = {"call": kind, "begin_ns": at, "end_ns": at + 100}
    return {"op": op, "kind": kind, "comm": 0, "bytes": size, "root": other, "tag": tag} | call | PLACE | more


def waited(*ops: int, at: int, end: int) -> dict:
    return {"wait": list(ops), "call": "Waitall", "begin_ns": at, "end_ns": end} | PLACE


def load(tmp_path, *ranks: list[dict], end: int = 60_000_000) -> profile.Profile:
    lines = []
    for rank, records in enumerate(ranks):
        head = {"format": "offpath-profile", "version": 1, "rank": rank, "ranks": len(ranks), "host": f"node{rank}"}
        lines += [head | {"mpi": "mpich"}, {"comm": 0, "members": list(range(len(ranks)))}, *records, {"end_ns": end}]
    file = tmp_path / "profile.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return profile.load(file)


def exchange(rank: int, **more) -> list[dict]:
    """Both ways, 30 ms of work, and what the host then waits for."""
    received = posted(0, "irecv", messages.ANY if rank else 1 - rank, tag=messages.ANY if rank else 1)
    return [received, posted(1, "isend", 1 - rank, at=2000, **more), waited(0, 1, at=30_000_000, end=47_000_000)]


def test_a_message_is_hidden_where_a_row_says_so(tmp_path):
    found = load(tmp_path, exchange(0), exchange(1), end=48_000_000)
    prediction = predict.predict(found, machine.default(), found.node_of, policy=ROW)
    # 2 MiB at 1 Gbit/s, 16.8 ms, behind 30 ms of work; the receiver copies them out.
    assert prediction.host - prediction.dpu == pytest.approx(16.8e6, rel=0.25)
    assert prediction.limit <= prediction.dpu and prediction.verdict == "worth it"
    shipped = predict.predict(found, machine.default(), found.node_of)
    assert shipped.dpu == prediction.dpu, "the row that ships"


def test_the_benchmark_has_messages_both_ways():
    times = {path: model.bench(machine.default(), model.Placement(2), model.SEND, 2 << 20, path, 20e6) for path in
             (model.HOST, model.DPU)}  # fmt: skip
    for each in times.values():
        assert each.pure == pytest.approx(16.8e6, rel=0.25) and each.compute == pytest.approx(20e6)
    assert times[model.HOST].total > 33e6 and times[model.DPU].total < 28e6


def test_a_late_receive_finds_its_payload_there(tmp_path):
    ranks = [[posted(0, "isend", 1), waited(0, at=20_000_000, end=47_000_000)],
             [posted(0, "irecv", 0, at=30_000_000), waited(0, at=30_001_000, end=47_000_000)]]  # fmt: skip
    found = load(tmp_path, *ranks, end=47_000_000)
    scenario = replay.scenario(found)
    host, dpu = (scenario.run(machine.default(), [0, 1], path) for path in (model.HOST, model.DPU))
    assert host.total > 46e6 and dpu.total < 32e6


def test_blocking_sends_stay_and_short_ones_wait_for_nobody(tmp_path):
    blocking = {"blocking": True}
    ranks = [[posted(0, "isend", 1, **blocking), posted(1, "isend", 1, size=8, at=40_000_000, **blocking),
              posted(2, "irecv", 1, size=8, at=41_000_000, **blocking)],
             [posted(0, "irecv", 0, **blocking), posted(1, "isend", 0, size=8, at=40_000_000, **blocking),
              posted(2, "irecv", 0, size=8, at=41_000_000, **blocking)]]  # fmt: skip
    scenario = replay.scenario(load(tmp_path, *ranks))
    assert [operation["path"] for operation in scenario.operations] == [model.HOST] * 3
    host, dpu = (scenario.run(machine.default(), [0, 1], path).total for path in (model.HOST, model.DPU))
    assert host == dpu > 17e6


def test_receives_get_what_mpi_would_give_them(tmp_path):
    ranks = [
        [posted(0, "isend", 2, tag=5, at=3000), posted(1, "isend", 2, tag=6, at=4000)],
        [posted(0, "isend", 2, tag=5, at=2000), posted(1, "isend", 1, tag=5, at=5000)],
        [posted(0, "irecv", messages.ANY, tag=5), posted(1, "irecv", 0, tag=messages.ANY),
         posted(2, "irecv", messages.ANY, tag=messages.ANY), posted(3, "irecv", 0, tag=9)],
    ]  # fmt: skip
    found = messages.matched(load(tmp_path, *ranks).ranks)
    pairs = {number: (pair.sender, pair.number) for (rank, number), pair in found.items() if rank == 2}
    assert pairs == {0: (1, 0), 1: (0, 0), 2: (0, 1)}, "by posting, and each sender's in its order"
    assert (1, 1) not in found, "to itself"


def test_what_has_no_partner_stays_as_it_was(tmp_path):
    ranks = [[posted(0, "isend", 1), waited(0, at=10_000_000, end=20_000_000)], []]
    scenario = replay.scenario(load(tmp_path, *ranks, end=20_000_000))
    assert scenario.operations == []
    assert scenario.run(machine.default(), [0, 1], model.HOST).total == pytest.approx(20e6, rel=0.01)


@pytest.mark.parametrize("change", [{"root": 2}, {"root": -1}, {"root": None}, {"tag": None}], ids=str)
def test_a_message_that_makes_no_sense_is_one_line(tmp_path, change):
    with pytest.raises(UserError, match="makes no sense"):
        load(tmp_path, [posted(0, "isend", 1) | change], [])
