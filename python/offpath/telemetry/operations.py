# SPDX-License-Identifier: BSD-3-Clause
"""A recording joined to operations: what each was, which way it went and why, what was hidden, what it waited for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from offpath.launch.stats import Cost
from offpath.telemetry.batch_job import BatchJob
from offpath.trace import sites, user_regions
from offpath.trace.parts import MESSAGES, ONE_SIDED
from offpath.trace.record import Rank
from offpath.trace.user_regions import Region

WHY = {
    "policy": "the policy says so for this size",
    "remembered": "earlier runs of this program have shown it",
    "adapted": "it was measured while the program ran",
    "exploring": "it was being found out which way is better",
    "agreement": "it was not decided yet when it was posted",
    "forced": "an info key, the name of the communicator or OFFPATH_MPI_WINDOWS says so",
    "message": "what waits for its message anyway, or does not go this way",
    "sender": "a receive: its sender decides how the message comes",
    "room": "its receiver had no room for the message yet",
    "blocking": "a blocking call (--blocking offloads some kinds of them)",
    "form": "something in the call that the service does not do",
    "communicator": "a communicator that the policy has nothing for, as one on a single node",
    "lost": "the service was lost",
    "off": "Offpath is off",
}


@dataclass
class Wait:
    """A call that waits: for operations, or (no operation) for what is not recorded."""

    call: str  # as MPI_Wait
    begin_ns: int
    end_ns: int
    site: sites.Site
    operations: list[Operation] = field(default_factory=list)
    others: int = 0  # operations that were left out of the recording
    thread: int = 0
    region: Region | None = None  # the innermost of those that the program names

    @property
    def ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def share_ns(self) -> float:
        """Of each operation that it waited for."""
        return self.ns / max(1, len(self.operations) + self.others)


@dataclass
class Operation:
    """One operation of one rank. Times in ns since all left MPI_Init; None: not known, or it did not happen."""

    rank: int
    number: int
    kind: str
    call: str  # as MPI_Ialltoall
    blocking: bool
    bytes: int
    path: str  # dpu or host
    why: str
    algorithm: str
    site: sites.Site
    begin_ns: int  # of the posting call
    end_ns: int
    team: tuple  # members and how many communicators of them came before: the same on all of them
    started_ns: int | None = None
    first_byte_ns: int | None = None
    done_ns: int | None = None
    last_peer: int | None = None
    failed: bool = False
    wait: Wait | None = field(default=None, compare=False, repr=False)
    root: int = 0  # one-sided: the target; of a message the other one, -1: anybody
    tag: int = 0
    thread: int = 0
    region: Region | None = None
    index: int | None = None  # among those on its team
    last_to_post: tuple[int, int] | None = None  # rank, and when it posted

    @property
    def name(self) -> str:
        return self.kind[1:] if self.blocking and self.kind.startswith("i") else self.kind

    @property
    def post_ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def wait_ns(self) -> float:
        """Its share of the call that waited for it and maybe for others."""
        return self.wait.share_ns if self.wait else 0.0

    @property
    def lost_ns(self) -> float:
        return self.post_ns + self.wait_ns

    @property
    def hidden(self) -> tuple[int, int]:
        """From when to when it was in progress and the program in no call for it; of host operations nobody knows."""
        if self.done_ns is None or self.blocking:
            return self.end_ns, self.end_ns
        until = self.done_ns if self.wait is None else min(self.done_ns, self.wait.begin_ns)
        return self.end_ns, max(self.end_ns, until)

    @property
    def hidden_ns(self) -> int:
        return hidden_ns([self])

    @property
    def waited_for(self) -> tuple[int | None, int]:
        """(rank that had not posted yet, for how long of the wait); (None, 0): all had."""
        called_ns, gone_ns = (self.begin_ns, self.end_ns) if self.blocking else (0, 0)
        if self.wait:
            called_ns, gone_ns = self.wait.begin_ns, self.wait.end_ns
        if self.last_to_post is None or self.last_to_post[0] == self.rank or self.last_to_post[1] <= called_ns:
            return None, 0
        return self.last_to_post[0], min(self.last_to_post[1], gone_ns) - called_ns


def hidden_ns(operations: Iterable[Operation]) -> int:
    """Time of the ranks behind which any of these was hidden: what several of a rank have in common counts once."""
    total = until = 0
    rank = None
    for number, begin, end in sorted((each.rank, *each.hidden) for each in operations):
        until = max(until, begin) if number == rank else begin
        rank = number
        total += max(0, end - until)
        until = max(until, end)
    return total


@dataclass
class Run:
    ranks: list[Rank]
    operations: list[Operation]
    waits: dict[int, list[Wait]]  # by rank
    regions: list[Region] = field(default_factory=list)  # rank by rank, in the order of their begin
    job: BatchJob = field(default_factory=BatchJob)
    cost: Cost = field(default_factory=Cost)

    @property
    def end_ns(self) -> int:
        return max(rank.end_ns for rank in self.ranks)

    @property
    def hosts(self) -> list[str]:
        return list(dict.fromkeys(rank.host for rank in self.ranks))

    @cached_property
    def operations_of(self) -> dict[int, list[Operation]]:
        """By rank, from when it is first asked for; as regions_of."""
        return _by_rank(self.operations)

    @cached_property
    def regions_of(self) -> dict[int, list[Region]]:
        return _by_rank(self.regions)

    def split(self, rank: Rank) -> dict[str, float]:
        """Where the time of a rank went, in ns; the parts add up to the whole."""
        own = self.operations_of[rank.number]
        parts = {
            "posting": sum(each.post_ns for each in own if not each.blocking),
            "waiting, DPU": sum(each.post_ns for each in own if each.blocking and each.path == "dpu"),
            "waiting, host": sum(each.post_ns for each in own if each.blocking and each.path != "dpu"),
            "other waits": 0.0,
        }
        for wait in self.waits[rank.number]:
            at_dpu = sum(each.path == "dpu" for each in wait.operations)
            parts["waiting, DPU"] += wait.share_ns * at_dpu
            parts["waiting, host"] += wait.share_ns * (len(wait.operations) - at_dpu)
            parts["other waits"] += wait.ns - wait.share_ns * len(wait.operations)
        return {"program": max(0.0, rank.end_ns - sum(parts.values())), **parts}

    def late(self) -> dict[int, Counter]:
        """Who waits for whom: by waiting rank, how long (ns) others had not even posted what it waited for."""
        found: dict[int, Counter] = defaultdict(Counter)
        for each in self.operations:
            other, ns = each.waited_for
            if other is not None and ns > 0:
                found[each.rank][other] += ns / (len(each.wait.operations) + each.wait.others if each.wait else 1)
        return found


def _by_rank(all_of_them: Iterable) -> dict[int, list]:
    found = defaultdict(list)
    for each in all_of_them:
        found[each.rank].append(each)
    return found


def join(ranks: list[Rank], known: dict[sites.Place, sites.Site] | None = None) -> Run:
    """`known`: call sites; others are looked up on this machine."""
    names = sites.of_lines((line for rank in ranks for line in rank.posts + rank.waits), known)
    run = Run(ranks, [], {})
    for rank in ranks:
        operations = {line["op"]: _operation(rank, line, names) for line in rank.posts}
        waits = [_wait(line, operations, names) for line in rank.waits]
        regions = user_regions.of_rank(rank)
        user_regions.assign(regions, [*operations.values(), *waits])
        run.operations += operations.values()
        run.waits[rank.number] = waits
        run.regions += regions
    _find_last(run.operations)
    return run


def _site(line: dict, names: dict[sites.Place, sites.Site]) -> sites.Site:
    return names.get(sites.place_of(line), sites.UNKNOWN)


def _operation(rank: Rank, line: dict, names: dict) -> Operation:
    blocking = line.get("blocking") is True
    path = "dpu" if line.get("path") == "dpu" else "host"
    why = "off" if rank.reason else str(line.get("why") or _undecided(str(line.get("kind")), blocking))
    team = rank.teams[line["comm"]]
    made = Operation(
        rank.number, line["op"], str(line.get("kind")), sites.call_of(line), blocking, line["bytes"], path, why,
        str(line.get("algorithm") or ""), _site(line, names), line["begin_ns"], line["end_ns"], team,
    )  # fmt: skip
    made.index = line.get("nth")
    made.root, made.tag, made.thread = line.get("root", 0), line.get("tag", 0), line.get("thread", 0)
    if (served := rank.served.get(made.number)) is not None:
        made.started_ns, made.first_byte_ns, made.done_ns = (
            served.get(name) for name in ("started_ns", "first_byte_ns", "done_ns")
        )
        made.failed = served.get("status", 0) != 0
        if "done_ns" in served and served["last_peer"] < len(team[0]):
            made.last_peer = team[0][served["last_peer"]]
    return made


def _undecided(kind: str, blocking: bool) -> str:
    """Why nobody was asked."""
    if kind in MESSAGES:
        return "sender" if kind == "irecv" else "message" if blocking else "policy"
    return "blocking" if blocking else "communicator"


def _wait(line: dict, operations: dict[int, Operation], names: dict) -> Wait:
    waited = Wait(sites.call_of(line), line["begin_ns"], line["end_ns"], _site(line, names))
    waited.others, waited.thread = line.get("others", 0), line.get("thread", 0)
    for number in line["wait"]:
        if number in operations and operations[number].wait is None:
            waited.operations.append(operations[number])
            operations[number].wait = waited
    return waited


def _find_last(operations: list[Operation]) -> None:
    """The n-th collective on a communicator is one collective on all its members."""
    members: dict[tuple, list[Operation]] = defaultdict(list)
    counts: Counter = Counter()
    for each in operations:
        if each.kind in ONE_SIDED or each.kind in MESSAGES:
            continue
        if each.index is None:  # all are here
            each.index = counts[each.rank, each.team]
            counts[each.rank, each.team] += 1
        members[each.team, each.index].append(each)
    for (team, _), parts in members.items():
        if len(parts) != len(team[0]):
            continue  # not recorded everywhere
        last = max(parts, key=lambda part: part.begin_ns)
        for part in parts:
            part.last_to_post = (last.rank, last.begin_ns)
