# SPDX-License-Identifier: BSD-3-Clause
"""What the counters of a worker's connections say in words that a user can act on.

The rule, of what was counted between two looks:

    incast           several nodes send here at once and segments were lost, so the worker lets them send in turn
    losing           at least 1 % of the segments sent were sent anew
    no room          more than half of the time with something to send its receivers had no room for it
    bandwidth-bound  nine tenths of the time there was something to send, and more than 16 KiB went for each round trip
    latency-bound    the same, and less than that went for each round trip: what is sent is short, or each waits

Without any of these, or with less than 100 segments sent, there is nothing to say. Time with something to send is that
of all connections together.
"""

from __future__ import annotations

from typing import Protocol

LEAST_SEGMENTS = 100
LOSING, NO_ROOM, BOUND = 0.01, 0.5, 0.9
ROUND_BYTES = 16 << 10
NAMES = ("segments_sent", "segments_resent", "sending_ns", "no_room_ns", "sent_bytes")


class Counted(Protocol):
    """Of a worker (observation.Worker): counters since its start, and what is so now."""

    updated_ns: int
    sent_bytes: int
    segments_sent: int
    segments_resent: int
    sending_ns: int
    no_room_ns: int
    round_trip_ns: int
    window_bytes: int


def verdict(before: Counted, now: Counted) -> list[str]:
    """The sentences for what was counted between two looks."""
    passed_ns = now.updated_ns - before.updated_ns
    sent, resent, sending_ns, no_room_ns, sent_bytes = (getattr(now, name) - getattr(before, name) for name in NAMES)
    says = []
    if now.window_bytes > 0:
        says.append(
            "incast: several nodes send here at once and segments were lost (a queue on the way is short), so they "
            "take turns. Let rounds of the program spread, or give the switch's port more room"
        )
    if passed_ns <= 0 or sent < LEAST_SEGMENTS:
        return says
    if resent >= LOSING * sent:
        says.append(
            f"losing: {resent / sent:.0%} of the segments sent were lost on the way (each loss may cost 200 ms). "
            "Look at the cables and the queues of the switch"
        )
    if no_room_ns > NO_ROOM * sending_ns:
        says.append(
            "no room: those who receive do not take what is sent (their services are busy). Give them more cores"
        )
    elif sending_ns >= BOUND * passed_ns:
        rounds = sending_ns / max(1, now.round_trip_ns)
        if sent_bytes / rounds > ROUND_BYTES:
            says.append("bandwidth-bound: there is always something to send. Send less, or compress (OFFPATH_COMPRESS)")
        else:
            says.append("latency-bound: what is sent is short, and waits. Send longer blocks, or more at once")
    return says
