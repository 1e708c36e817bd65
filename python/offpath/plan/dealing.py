# SPDX-License-Identifier: BSD-3-Clause
"""Work that ranks deal out among themselves by a shared counter (MPI_Fetch_and_op): who is early takes the next.

Who does what is then another with offloading than without: replayed as recorded, a rank that gains would wait for one
that loses, and what was near would be near again (bspmm on two nodes moves 400 MiB without and 355 with). So what a
rank did from one number to the next becomes a section that any rank may draw (src/model/job.hpp), where the recording
allows it.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

from offpath.base.oldest import zip_equal


@dataclass(frozen=True)
class Fetch:
    """An access to a counter, over with the act before `end`, which waits for its number."""

    rank: int
    counter: Hashable
    epoch: Hashable  # the same on all ranks between two collectives
    end: int
    got_ns: int


@dataclass
class Dealt:
    """Fields of the model's request, and call sites by section as by rank."""

    ranks: list[list[list]]
    sites: list[list]
    sections: list[list[list]] = field(default_factory=list)
    section_sites: list[list] = field(default_factory=list)
    queues: list[list[int]] = field(default_factory=list)  # sections in the order of the counter

    def sites_of(self, rank: int, drawn: list[int]) -> list:
        """Of the acts that the rank did in a simulation in which it drew those sections."""
        places = []
        left = drawn[::-1]
        for act, place in zip_equal(self.ranks[rank], self.sites[rank]):
            if act[0] == "draw":
                queue = set(self.queues[act[1]])
                while left and left[-1] in queue:
                    places += self.section_sites[left.pop()]
            places.append(place)
        return places


def deal(ranks: list[list[list]], sites: list[list], fetches: list[Fetch], movable: set[int]) -> Dealt:
    """`movable`: the operations that whoever draws them can do as well, one-sided ones."""
    loops: dict = defaultdict(lambda: defaultdict(list))
    for fetch in fetches:
        loops[fetch.counter, fetch.epoch][fetch.rank].append(fetch)
    dealt = Dealt([list(acts) for acts in ranks], [list(places) for places in sites])
    cuts: list[tuple[int, int, int, int]] = []
    loops_of = Counter(epoch for _, epoch in loops)
    for (_, epoch), loop in loops.items():
        pairs = [pair for own in loop.values() for pair in zip(own, own[1:])]
        if len(loop) < 2 or not pairs or not _ends_together(loop, pairs):
            continue
        if loops_of[epoch] > 1:  # inside of each other
            continue
        if not all(_is_closed(ranks[last.rank][first.end : last.end], movable) for first, last in pairs):
            continue
        queue = []
        for first, last in sorted(pairs, key=lambda pair: pair[0].got_ns):
            queue.append(len(dealt.sections))
            dealt.sections.append(ranks[first.rank][first.end : last.end])
            dealt.section_sites.append(sites[first.rank][first.end : last.end])
        cuts += [(rank, own[0].end, own[-1].end, len(dealt.queues)) for rank, own in loop.items()]
        dealt.queues.append(queue)
    for rank, begin, end, number in sorted(cuts, reverse=True):
        dealt.ranks[rank][begin:end] = [["draw", number]]
        dealt.sites[rank][begin:end] = [None]
    return dealt


def _ends_together(loop: dict, pairs: list) -> bool:
    """As it must where who is free takes the next: nobody ends earlier than the others by more than one section."""
    ends = [own[-1].got_ns for own in loop.values()]
    return max(ends) - min(ends) <= max(last.got_ns - first.got_ns for first, last in pairs)


def _is_closed(acts: list[list], movable: set[int]) -> bool:
    """Whether it posts what it waits for and waits for what it posts."""
    posted = {number for act in acts if act[0] == "post" for number in act[1:]}
    waited = {number for act in acts if act[0] == "wait" for number in act[1:]}
    return posted == waited and posted <= movable
