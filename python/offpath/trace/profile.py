# SPDX-License-Identifier: BSD-3-Clause
"""Profile files (docs/guide-planner.md describes them): reading, checking, and what the ranks' records say together.

A file is the concatenation of what each rank wrote: its header, its records in the order of the calls' return, its end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from offpath.base import files, room
from offpath.base.errors import UserError
from offpath.trace import sites
from offpath.trace.parts import MESSAGES, ONE_SIDED
from offpath.trace.record import Rank, headed

FORMAT, VERSION = "offpath-profile", 1
AGAIN = "Give a file of offpath profile."


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
    return of_text(files.read_text(file, "profile", AGAIN), file)


def of_text(content: str, file: Path) -> Profile:
    """What is in it, or is to be."""
    ranks: dict[int, Rank] = {}
    current: Rank | None = None
    places: dict[sites.Place, sites.Site] = {}
    for number, text in enumerate(content.splitlines(), start=1):
        line = _parsed(text, file, number)
        if "format" in line or current is None:
            current = _header(line, file)
            ranks[current.number] = current
        elif "sites" in line:
            places |= sites.from_json(line["sites"])
        elif not current.add(line) or ("call" in line and not _is_known(line, current)):
            raise UserError(f"{file} is damaged (line {number} makes no sense). Record the run again.")
    if current is None:
        raise UserError(f"{file} is empty (there is nothing to plan from). Record a run with offpath profile.")
    for missing in sorted(set(range(current.ranks)) - set(ranks)):
        raise UserError(f"{file} is cut short (rank {missing} of {current.ranks} is missing). Record the run again.")
    for rank in ranks.values():
        if rank.end_ns is None:
            raise UserError(f"{file} is cut short (rank {rank.number} has no end). Record the run again.")
    return Profile([ranks[number] for number in sorted(ranks)], current.mpi, places)


def _parsed(text: str, file: Path, number: int) -> dict:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict):
        what = "no profile" if number == 1 else "damaged or cut short"
        raise UserError(f"{file} is {what} (line {number} is no JSON object). {AGAIN}")
    return line


def _header(line: dict, file: Path) -> Rank:
    try:
        if "format" not in line:
            raise ValueError("its first line is no header")
        return headed(files.of_format(line, FORMAT, VERSION), FORMAT)
    except ValueError as error:
        raise UserError(f"{file} is no profile ({error}). {AGAIN}") from None


def _is_known(line: dict, rank: Rank) -> bool:
    """Where the call was made, and what it posts, make sense to the model."""
    good = isinstance(line.get("file", ""), str) and isinstance(line.get("offset", 0), int)
    if "op" not in line or not good:
        return good
    kind, root = line.get("kind"), line.get("root")
    if not isinstance(kind, str) or not isinstance(root, int) or root >= len(rank.members[line["comm"]]):
        return False
    if kind in MESSAGES:
        return isinstance(line.get("tag"), int) and root >= (-1 if kind == "irecv" else 0)
    return root >= 0 or kind not in ONE_SIDED
