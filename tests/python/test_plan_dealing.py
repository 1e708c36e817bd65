# SPDX-License-Identifier: BSD-3-Clause
"""Replays of programs whose ranks deal out work by a shared counter: who is early takes more, where that may be."""

from conftest import require
from offpath.base.paths import paths
from offpath.plan import dealing, machine, model, replay
from offpath.trace.profile import Profile
from offpath.trace.record import Rank

MS = 1_000_000
WORLD = [0, 1]


class Recorder:
    """Writes the records of one rank as the recording library does."""

    def __init__(self, number):
        self.rank = Rank(number, len(WORLD), f"node{number}", members={0: WORLD, 1: WORLD})
        self.now_ns, self.count = 0, 0

    def _call(self, took_ns=1000, **fields):
        call = {"begin_ns": self.now_ns, "end_ns": self.now_ns + took_ns, "file": "app", "offset": 1, "call": "x"}
        self.now_ns += took_ns
        self.rank.records.append(call | fields)

    def operation(self, kind, size, comm=0, root=0, blocking=False):
        self._call(op=self.count, kind=kind, comm=comm, bytes=size, root=root, blocking=blocking)
        self.count += 1
        return self.count - 1

    def wait(self, *operations):
        self._call(wait=list(operations))

    def compute(self, ns):
        self.now_ns += ns

    def fetch(self, comm=0):
        self.wait(self.operation("fetch", 8, comm))

    def done(self):
        self.operation("ibarrier", 0, blocking=True)
        self.rank.end_ns = self.now_ns
        return self.rank


def section(rank, ns=MS):
    got = rank.operation("get", 4096, root=1)
    rank.compute(ns)
    rank.wait(got)


def loop(rank, sections, before_ns=0, between=section):
    rank.compute(before_ns)
    rank.fetch()
    for _ in range(sections):
        between(rank)
        rank.fetch()


def scenario_of(*ranks):
    return replay.scenario(Profile([rank.done() for rank in ranks], "openmpi"))


def fixed(scenario):
    return not scenario.work.queues and not any(act[0] == "draw" for acts in scenario.work.ranks for act in acts)


def test_work_changes_hands_where_a_path_is_faster_for_one_rank():
    require(paths().prefix / "bin" / "offpath-model")
    first, second = Recorder(0), Recorder(1)
    loop(first, 12)
    loop(second, 4, before_ns=8 * MS)
    scenario = scenario_of(first, second)
    assert [len(queue) for queue in scenario.work.queues] == [16]
    # Without the second rank's own work, each does half.
    scenario.work.ranks[1][0] = ["compute", 0]
    times = scenario.run(machine.default(), [0, 1], model.DPU)
    assert 8 * MS < times.total < 9.5 * MS
    assert set(times.sites) == {("app", 1)}


def test_two_loops_with_a_collective_between_them_are_two_queues():
    ranks = Recorder(0), Recorder(1)
    for rank in ranks:
        loop(rank, 3)
        rank.operation("ibarrier", 0, blocking=True)
        loop(rank, 2)
    assert [len(queue) for queue in scenario_of(*ranks).work.queues] == [6, 4]


def test_what_need_not_be_a_counter_stays_as_recorded():
    """A rank that stops early had no right to what was left, so the numbers told it what was its own."""
    first, second = Recorder(0), Recorder(1)
    loop(first, 8)
    loop(second, 2)
    assert fixed(scenario_of(first, second))


def test_sections_that_wait_for_others_stay_as_recorded():
    first, second = Recorder(0), Recorder(1)
    early = first.operation("get", 4096, root=1)
    loop(first, 2, between=lambda rank: rank.wait(early))
    loop(second, 2)
    assert fixed(scenario_of(first, second))


def test_counters_inside_of_each_other_stay_as_recorded():
    def inner(rank):
        rank.fetch(comm=1)
        section(rank)

    ranks = Recorder(0), Recorder(1)
    for rank in ranks:
        loop(rank, 3, between=inner)
    assert fixed(scenario_of(*ranks))


def test_a_rank_that_came_too_late_may_still_draw():
    acts = [[["post", 0], ["wait", 0], ["compute", 5], ["post", 1], ["wait", 1]], [["post", 2], ["wait", 2]]]
    fetches = [
        dealing.Fetch(0, "c", 0, 2, 10),
        dealing.Fetch(0, "c", 0, 5, 20),
        dealing.Fetch(1, "c", 0, 2, 18),
    ]
    found = dealing.deal(acts, [[None] * len(each) for each in acts], fetches, {0, 1, 2})
    assert found.sections == [[["compute", 5], ["post", 1], ["wait", 1]]]
    assert found.ranks == [[["post", 0], ["wait", 0], ["draw", 0]], [["post", 2], ["wait", 2], ["draw", 0]]]
    assert len(found.sites_of(0, [0])) == 2 + 3 + 1
    assert len(found.sites_of(1, [])) == 2 + 1
