# SPDX-License-Identifier: BSD-3-Clause
"""Recordings (docs/guide-telemetry.md describes their lines): what the ranks wrote, read and checked.

Every function raises UserError with one line for what is foreign, damaged or cut short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from offpath.base import files, room
from offpath.base.errors import DISK_FULL, UserError, write_error
from offpath.trace.parts import read as read_part

FORMAT, VERSION = "offpath-trace", 1
MAX_RANKS = 1 << 20
_FEWER = "Record each so many-th operation (--trace-sample)"
MAKE_ROOM = "Make room there, or record less with --trace-sample"


@dataclass
class Rank:
    """What one rank recorded; times in ns since all left MPI_Init."""

    number: int
    ranks: int
    host: str
    mpi: str = ""
    reason: str = ""  # why nothing is offloaded; empty: it is
    service_pid: int = 0
    clock: str = ""  # which CLOCK_MONOTONIC its times are of; empty: not known
    zero_ns: int | None = None  # that clock when all left MPI_Init
    realtime_ns: int | None = None  # what the wall clock said then
    sample: int = 1  # each how many-th operation is here
    operations_left_out: int = 0
    members: dict[int, list[int]] = field(default_factory=dict)  # of communicators, as ranks of the job
    records: list[dict] = field(default_factory=list)  # of calls
    posts: list[dict] = field(default_factory=list)  # those of them that begin an operation
    waits: list[dict] = field(default_factory=list)  # those that wait
    regions: list[dict] = field(default_factory=list)
    served: dict[int, dict] = field(default_factory=dict)  # by operation
    lines: list[dict] = field(default_factory=list)  # all of it
    end_ns: int | None = None  # of what it recorded
    ended: bool = False  # it reached MPI_Finalize
    failure: str = ""  # why it could write no more

    @cached_property
    def teams(self) -> dict[int, tuple]:
        """Of each communicator its members, and how many of the same ones came before it: the same on all ranks."""
        seen: Counter = Counter()
        found = {}
        for number, members in sorted(self.members.items()):
            found[number] = tuple(members), seen[tuple(members)]
            seen[tuple(members)] += 1
        return found

    def add(self, line: object) -> bool:
        """False: the line makes no sense."""
        if not isinstance(line, dict):
            return False
        if "members" in line:
            members = line["members"]
            if not natural(line.get("comm")) or not isinstance(members, list):
                return False
            self.members[line["comm"]] = members
            return all(natural(member) and member < self.ranks for member in members)
        if "served" in line:
            times = [line[name] for name in SERVICE_TIMES if name in line]
            others = line["served"], line.get("last_peer", 0), line.get("seen_ns", 0)
            if not all(map(natural, [*others, *times])) or times != sorted(times):
                return False
            self.served[line["served"]] = line
            return "done_ns" not in line or "last_peer" in line
        if "call" in line or "region" in line:
            in_order = natural(line.get("begin_ns")) and natural(line.get("end_ns"))
            if not in_order or line["begin_ns"] > line["end_ns"] or not natural(line.get("thread", 0)):
                return False
            return self._add_region(line) if "region" in line else self._add_call(line)
        if "end_ns" in line:
            self.end_ns, self.operations_left_out = line["end_ns"], line.get("operations_left_out", 0)
            return natural(self.end_ns) and natural(self.operations_left_out)
        return True

    def _add_region(self, line: dict) -> bool:
        self.regions.append(line)
        return isinstance(line["region"], str)

    def _add_call(self, line: dict) -> bool:
        self.records.append(line)
        if "op" in line:
            self.posts.append(line)
            numbers = line["op"], line.get("bytes"), line.get("nth", 0), line.get("comm")
            return all(map(natural, numbers)) and line["comm"] in self.members
        waited = line.get("wait", line.get("test"))
        if "wait" in line:
            self.waits.append(line)
        return isinstance(waited, list) and all(map(natural, waited)) and natural(line.get("others", 0))


def of_parts(parts: Iterable[Path]) -> list[Rank]:
    """The recording of a run from its ranks' own files. A rank that was killed has no end: its file counts as far as it
    goes."""
    found = list(parts)
    room.check(found, room.OF_PARTS, "the recording", f"{_FEWER}, or a shorter run")
    read = [(part, read_part(part)) for part in found]
    if read and not any(lines for _, lines in read):
        why = files.no_room(read[0][0].parent) or "its ranks were killed before they could write anything"
        raise UserError(f"the recording is empty ({why}). {MAKE_ROOM if why == DISK_FULL else 'Record the run again'}.")
    return _together([_rank(lines, str(part)) for part, lines in read if lines], "the recording")


def cut_short(ranks: Sequence[Rank]) -> str:
    """What is missing in a recording and why; empty: nothing."""
    count, problems = ranks[0].ranks, []
    for failure, number in Counter(rank.failure for rank in ranks if rank.failure).items():
        problems.append(f"{failure}: {number} of {count} ranks could not write all")
    if killed := sum(not rank.ended and not rank.failure for rank in ranks):
        problems.append(f"{killed} of {count} ranks did not reach MPI_Finalize")
    if missing := count - len(ranks):
        problems.append(f"of {missing} of {count} ranks there is nothing")
    if not problems:
        return ""
    cure = f" {MAKE_ROOM}." if any(rank.failure == DISK_FULL for rank in ranks) else ""
    return f"the recording is cut short ({'; '.join(problems)}).{cure}"


def load(file: Path) -> list[Rank]:
    """The recording in a trace file."""
    return of_recording(read(file), str(file))


def read(file: Path) -> dict:
    """A trace file's recording as it is written, for of_recording(). The rest of the file, most of it, goes."""
    room.check([file], room.OF_JSON, str(file), f"{_FEWER}, or report where there is more memory")
    what, cure = "trace of Offpath", "Give a file of offpath run --trace."
    return files.read_json(file, what, cure, lambda trace: files.of_format(trace["offpath"], FORMAT, VERSION))


def of_recording(recording: dict, name: str) -> list[Rank]:
    ranks = recording.get("ranks")
    if not isinstance(ranks, list) or not all(isinstance(lines, list) for lines in ranks):
        raise UserError(f"{name} is damaged (its recording has no ranks). Record the run again.")
    return _together([_rank(lines, name) for lines in ranks], name)


def _together(ranks: list[Rank], name: str) -> list[Rank]:
    if not ranks:
        raise UserError(f"{name} is empty (no rank recorded anything). Is it an MPI program that reached MPI_Init?")
    if len({rank.number for rank in ranks}) != len(ranks):
        raise UserError(f"{name} is damaged (a rank is there twice). Record the run again.")
    _align(ranks)
    return sorted(ranks, key=lambda rank: rank.number)


def _align(ranks: list[Rank]) -> None:
    """One zero for all ranks of a clock: the first of them to leave the barrier says when it ended, the others had to
    wait for a core."""
    timed = [rank for rank in ranks if rank.clock and rank.zero_ns is not None]
    zeros: dict[str, int] = {}
    for rank in timed:
        zeros[rank.clock] = min(zeros.get(rank.clock, rank.zero_ns), rank.zero_ns)
    for rank in timed:
        late_ns = rank.zero_ns - zeros[rank.clock]
        rank.zero_ns = rank.lines[0]["zero_ns"] = zeros[rank.clock]
        rank.end_ns += late_ns
        for line in rank.lines[1:] if late_ns else ():
            line |= {name: line[name] + late_ns for name in TIMES if name in line}


def headed(head: object, wanted: str = FORMAT) -> Rank:
    """A rank of which there is the header. Raises ValueError for what is none of that format."""
    head = head if isinstance(head, dict) else {}
    number, ranks = head.get("rank"), head.get("ranks")
    if head.get("format") != wanted or not natural(number) or not natural(ranks) or not number < ranks <= MAX_RANKS:
        raise ValueError(f"rank {number} of {ranks}")
    rank = Rank(number, ranks, str(head.get("host")), str(head.get("mpi")), str(head.get("reason", "")))
    rank.service_pid = head["service_pid"] if natural(head.get("service_pid")) else 0
    rank.clock = str(head.get("clock") or "")
    rank.zero_ns = head["zero_ns"] if natural(head.get("zero_ns")) else None
    rank.realtime_ns = head["realtime_ns"] if natural(head.get("realtime_ns")) else None
    rank.sample = max(1, head["sample"]) if natural(head.get("sample")) else 1
    rank.failure = write_error(head["errno"]) if natural(head.get("errno")) else ""
    return rank


def _rank(lines: list[dict], name: str) -> Rank:
    try:
        rank = headed(lines[0] if lines else None)
    except ValueError:
        raise UserError(f"{name} is damaged (a rank without a header). Record the run again.") from None
    rank.lines = lines
    last_ns = 0
    for line in lines[1:]:
        if not rank.add(line):
            raise UserError(f"{name} is damaged (rank {rank.number}: a line makes no sense). Record the run again.")
        last_ns = max(last_ns, line.get("end_ns", 0))
    rank.ended = rank.end_ns is not None
    rank.end_ns = last_ns if rank.end_ns is None else max(rank.end_ns, 0)
    return rank


SERVICE_TIMES = ("posted_ns", "started_ns", "first_byte_ns", "done_ns")  # in the order in which they happen
TIMES = ("begin_ns", "end_ns", "seen_ns", *SERVICE_TIMES)


def natural(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
