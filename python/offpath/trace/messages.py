# SPDX-License-Identifier: BSD-3-Clause
"""Which send of a profile is received by which receive.

A profile says what was posted, not what came: receives are matched by MPI's rules, in their order, and those with
wildcards with the send that was posted first. What then has no partner (as one of a call that is not recorded) stays
as it was.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from offpath.trace.record import Rank

ANY = -1
EAGER_BYTES = 65536  # up to there a blocking send waits for nobody, with any library


@dataclass(frozen=True)
class Pair:
    """A message; alike only if it is the same."""

    sender: int
    number: int  # of the sender's operations
    receiver: int
    bytes: int
    may_go: bool  # a nonblocking send, which may be offloaded


def waits(record: dict) -> bool:
    """Whether a blocking call waits for its operation."""
    return record["kind"] != "isend" or record["bytes"] > EAGER_BYTES


def matched(ranks: Sequence[Rank]) -> dict[tuple[int, int], Pair]:
    """By rank and operation, of both ends."""
    sends: dict[tuple, dict[tuple, deque]] = defaultdict(lambda: defaultdict(deque))
    for rank in ranks:
        for record in _of_kind(rank, "isend"):
            receiver = rank.members[record["comm"]][record["root"]]
            sends[rank.teams[record["comm"]], receiver][rank.number, record["tag"]].append(record)
    found = {}
    for rank in ranks:
        for record in _of_kind(rank, "irecv"):
            root = record["root"]
            sender = ANY if root == ANY else rank.members[record["comm"]][root]
            queues = sends[rank.teams[record["comm"]], rank.number]
            fitting = [key for key in _keys(queues, sender, record["tag"]) if queues.get(key)]
            if not fitting:
                continue
            key = min(fitting, key=lambda each: queues[each][0]["begin_ns"])
            sent = queues[key].popleft()
            if key[0] == rank.number or sent["bytes"] > record["bytes"]:
                continue  # to itself, or not that one
            pair = Pair(key[0], sent["op"], rank.number, sent["bytes"], not sent.get("blocking"))
            found[key[0], sent["op"]] = found[rank.number, record["op"]] = pair
    return found


def _of_kind(rank: Rank, kind: str) -> list[dict]:
    return [record for record in rank.records if record.get("kind") == kind]


def _keys(queues: dict, sender: int, tag: int) -> list[tuple]:
    if sender != ANY and tag != ANY:
        return [(sender, tag)]
    return [key for key in queues if sender in (ANY, key[0]) and tag in (ANY, key[1])]
