# SPDX-License-Identifier: BSD-3-Clause
"""Profile files (docs/guide-planner.md describes them): reading, checking, and what the ranks' records say together.

A file is the concatenation of what each rank wrote: its header, its records in the order of the calls' return, its end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from offpath.base import room
from offpath.base.errors import UserError
from offpath.trace import sites
from offpath.trace.parts import MESSAGES, ONE_SIDED
from offpath.trace.record import natural

FORMAT, VERSION = "offpath-profile", 1


@dataclass
class Rank:
    """What one rank recorded; times in ns since all left MPI_Init."""

    number: int
    host: str
    members: dict[int, list[int]] = field(default_factory=dict)  # of communicators, as ranks of the job
    records: list[dict] = field(default_factory=list)
    end_ns: int | None = None


@dataclass
class Profile:
    ranks: list[Rank]
    mpi: str
    sites: dict[sites.Place, sites.Site] = field(default_factory=dict)  # those that were known when it was recorded

    @property
    def end_ns(self) -> int:
        return max(rank.end_ns for rank in self.ranks)

    @property
    def node_of(self) -> list[int]:
        """By rank; nodes are numbered in the order of their first rank."""
        hosts: dict[str, int] = {}
        return [hosts.setdefault(rank.host, len(hosts)) for rank in self.ranks]


def load(file: Path) -> Profile:
    """Raises UserError with one line for a file that is foreign or cut short."""
    room.check([file], room.OF_JSON, str(file), "Profile a shorter run, or plan where there is more memory")
    try:
        lines = file.read_text().splitlines()
    except OSError as error:
        raise UserError(
            f"the profile {file} cannot be read ({error.strerror}). Give a file of offpath profile."
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{file} is no profile (it is not text). Give a file of offpath profile.") from None
    ranks: dict[int, Rank] = {}
    current: Rank | None = None
    expected, mpi = 0, ""
    places: dict[sites.Place, sites.Site] = {}
    for number, line in enumerate(lines, start=1):
        record = _parsed(line, file, number)
        if "format" in record:
            current, expected, mpi = _header(record, file, number)
            ranks[current.number] = current
        elif "sites" in record:
            places |= sites.from_json(record["sites"])
        elif current is None:
            raise UserError(f"{file} is no profile (its first line is no header). Give a file of offpath profile.")
        elif "comm" in record and "members" in record:
            comm, members = record["comm"], record["members"]
            known = isinstance(members, list) and all(natural(each) and each < expected for each in members)
            if not natural(comm) or not known:
                raise _damaged(file, number)
            current.members[comm] = members
        elif "call" in record:
            _checked_call(record, current, file, number)
            current.records.append(record)
        elif "region" in record:
            continue  # computation, to the model
        elif "end_ns" in record:
            if not natural(record["end_ns"]):
                raise _damaged(file, number)
            current.end_ns = record["end_ns"]
    if current is None:
        raise UserError(f"{file} is empty (there is nothing to plan from). Record a run with offpath profile.")
    for missing in sorted(set(range(expected)) - set(ranks)):
        raise UserError(f"{file} is cut short (rank {missing} of {expected} is missing). Record the run again.")
    for rank in ranks.values():
        if rank.end_ns is None:
            raise UserError(f"{file} is cut short (rank {rank.number} has no end). Record the run again.")
    return Profile([ranks[number] for number in sorted(ranks)], mpi, places)


def _parsed(line: str, file: Path, number: int) -> dict:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        what = (
            "is no profile (it holds no JSON lines)"
            if number == 1
            else f"is damaged or cut short (line {number} is not JSON)"
        )
        raise UserError(f"{file} {what}. Record the run again with offpath profile.")
    return record


def _header(record: dict, file: Path, number: int) -> tuple[Rank, int, str]:
    if record["format"] != FORMAT:
        raise UserError(f"{file} is no profile (its format is not {FORMAT}). Give a file of offpath profile.")
    if record.get("version") != VERSION:
        raise UserError(f"{file} has version {record.get('version')} (only {VERSION} is known). Record the run again.")
    rank, ranks = record.get("rank"), record.get("ranks")
    if not isinstance(rank, int) or not isinstance(ranks, int) or not 0 <= rank < ranks:
        raise UserError(f"{file} is damaged (line {number}: rank {rank} of {ranks}). Record the run again.")
    return Rank(rank, str(record.get("host"))), ranks, str(record.get("mpi"))


def _checked_call(record: dict, rank: Rank, file: Path, number: int) -> None:
    times = record.get("begin_ns"), record.get("end_ns")
    good = all(map(natural, times)) and times[0] <= times[1]
    good = good and isinstance(record.get("file", ""), str) and isinstance(record.get("offset", 0), int)
    if good and "op" in record:
        kind, root, comm = str(record.get("kind")), record.get("root"), record.get("comm")
        good = natural(record["op"]) and natural(record.get("bytes")) and natural(comm) and comm in rank.members
        good = good and "kind" in record and isinstance(root, int) and root < len(rank.members[comm])
        if good and kind in MESSAGES:
            good = isinstance(record.get("tag"), int) and root >= (-1 if kind == "irecv" else 0)
        elif good and kind in ONE_SIDED:
            good = root >= 0
    elif good:
        waited = record.get("wait", record.get("test"))
        good = isinstance(waited, list) and all(map(natural, waited))
    if not good:
        raise _damaged(file, number)


def _damaged(file: Path, number: int) -> UserError:
    return UserError(f"{file} is damaged (line {number} makes no sense). Record the run again.")
