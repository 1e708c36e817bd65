# SPDX-License-Identifier: BSD-3-Clause
"""The team of a process group, and teams of two for what one rank sends to another."""

from __future__ import annotations

import threading
from typing import Any

from offpath.api.operation import Operation
from offpath.api.team import Team
from offpath.rendezvous.meeting import Meeting
from offpath.rendezvous.stores import Store
from offpath.torch.joining import join, joined, note_group

_KEPT = 64  # tags from 0 on


def team_of(store: Store, rank: int, size: int, seconds: float) -> Team:
    """The default group meets by itself. Members of others prove to each other that they are of the job."""
    world = join(store, rank, size, seconds)
    if world is not None:
        return world
    meeting = Meeting(store, "group", rank, size, seconds, lambda: joined().key)
    met = meeting.hold(lambda _: joined().session.address)
    team = Team(joined().session, met.drawn.team_id, rank, met.addresses)
    note_group(team, met.addresses, seconds)
    return team


class Channels:
    """Messages from one rank to another under one tag are operations of a team of these two, in their order. Each team
    takes room in the service, and a program may have a new tag for each message: teams of the first tags stay, and a
    message under another tag has a team of its own."""

    def __init__(self, team: Team):
        self._team = team
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, int, int], Team] = {}
        self._counts: dict[tuple[int, int, int], int] = {}

    def send(self, array: Any, peer: int, tag: int) -> Operation[Any]:
        return self._post((self._team.rank, peer, tag), {1: array}, {})

    def receive(self, array: Any, peer: int, tag: int) -> Operation[Any]:
        return self._post((peer, self._team.rank, tag), {}, {0: array})

    def _post(self, channel: tuple[int, int, int], send: dict[int, Any], recv: dict[int, Any]) -> Operation[Any]:
        with self._lock:
            if 0 <= channel[2] < _KEPT:
                if channel not in self._kept:
                    self._kept[channel] = self._pair(channel)
                return self._kept[channel].iexchange(send, recv)
            number = self._counts.get(channel, 0)
            with self._pair(channel, number) as team:  # the operation goes on without it
                operation = team.iexchange(send, recv)
            self._counts[channel] = number + 1
            return operation

    def _pair(self, channel: tuple[int, int, int], *number: int) -> Team:
        source, target, tag = channel
        pair = self._team.sub([source, target], label=" ".join(map(str, ("channel", tag, *number))))
        assert pair is not None
        return pair
