# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a program that it names (offpath/region.h): how they lie inside each other, and what was called in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from offpath.trace.record import Rank

SEPARATOR = "/"


@dataclass
class Region:
    """One time through a region on one thread of a rank. Times in ns since all left MPI_Init."""

    rank: int
    thread: int
    name: str
    begin_ns: int
    end_ns: int
    left_open: bool  # the program's part ended in it
    around: Region | None = field(default=None, repr=False)

    @property
    def path(self) -> str:
        """With what it lies in: "solve/assemble"."""
        return self.name if self.around is None else self.around.path + SEPARATOR + self.name

    @property
    def depth(self) -> int:
        return 0 if self.around is None else self.around.depth + 1

    @property
    def ns(self) -> int:
        return self.end_ns - self.begin_ns

    def with_all_around(self) -> Iterator[Region]:
        region: Region | None = self
        while region is not None:
            yield region
            region = region.around


class Call(Protocol):
    """What is made on a thread, at a time, in a region."""

    thread: int
    begin_ns: int
    region: Region | None


def of_rank(rank: Rank) -> list[Region]:
    """In the order of their begin, each in what it lies in. One that overlaps another without lying in it, which only
    a damaged recording has, lies in nothing of it."""
    regions = [
        Region(
            rank.number, line.get("thread", 0), line["region"], line["begin_ns"], line["end_ns"],
            line.get("left_open") is True,
        )
        for line in rank.regions
    ]  # fmt: skip
    # They are written as they end: of those that begin at one time, the last written is the outermost.
    ordered = [region for _, region in sorted(enumerate(regions), key=lambda item: (item[1].begin_ns, -item[0]))]
    open_ones: dict[int, list[Region]] = defaultdict(list)
    for region in ordered:
        stack = open_ones[region.thread]
        while stack and stack[-1].end_ns < region.end_ns:
            stack.pop()
        region.around = stack[-1] if stack else None
        stack.append(region)
    return ordered


def assign(regions: list[Region], calls: Iterable[Call]) -> None:
    """Says of each call of the same rank which region it was made in: the innermost."""
    by_thread: dict[int, list] = defaultdict(list)
    for call in calls:
        by_thread[call.thread].append(call)
    for thread, own in by_thread.items():
        upcoming = [region for region in reversed(regions) if region.thread == thread]
        stack: list[Region] = []
        for call in sorted(own, key=lambda call: call.begin_ns):
            while upcoming and upcoming[-1].begin_ns <= call.begin_ns:
                stack.append(upcoming.pop())
            stack = [region for region in stack if call.begin_ns < region.end_ns]
            call.region = stack[-1] if stack else None
