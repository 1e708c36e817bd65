# SPDX-License-Identifier: BSD-3-Clause
"""The team of a process group, and teams of two for what one rank sends to another."""

from __future__ import annotations

import secrets
from typing import Any

from offpath.api.failures import NoServiceError
from offpath.api.operation import Operation
from offpath.api.session import Session
from offpath.api.team import Team
from offpath.rendezvous.secret import WORDS_BYTES, SealedStore, draw
from offpath.rendezvous.start import init
from offpath.rendezvous.stores import Deadline, Store, await_key

_world: Team | None = None  # of the first group
_alone: Team | None = None  # of a process that works without one


def team_of(store: Store, rank: int, size: int, seconds: float) -> Team:
    """The first group of a process holds all ranks: it attaches. Others are teams of the same session."""
    global _world
    if _world is None or _world.session.closed:
        _world = init(store=store, rank=rank, size=size, timeout=seconds)
        return _world
    known, deadline = SealedStore(store, _world._key), Deadline(seconds)
    if rank == 0:
        known.set("offpath/team", secrets.token_bytes(WORDS_BYTES))
    team = draw(_awaited(known, "offpath/team", 0, deadline), _world._key)
    sealed = SealedStore(store, team.key)
    sealed.set(f"offpath/address/{rank}", _world.session.address)
    addresses = [_awaited(sealed, f"offpath/address/{member}", member, deadline) for member in range(size)]
    return Team(_world.session, team.team_id, rank, addresses)


def session() -> Session:
    """The first group's; of a process without one, its own."""
    global _alone
    if _world is not None and not _world.session.closed:
        return _world.session
    if _alone is None or _alone.session.closed:
        _alone = init(rank=0, size=1)
    return _alone.session


def _awaited(store: Store, key: str, member: int, deadline: Deadline) -> bytes:
    value = await_key(store, key, deadline)
    if value is None:
        raise NoServiceError(
            f"rank {member} of a new group has not come in {deadline.seconds:g} s. All ranks of a group make it."
        )
    return value


class Channels:
    """Messages from one rank to another under one tag are the operations of a team of these two, in their order."""

    def __init__(self, team: Team):
        self._team = team
        self._teams: dict[tuple[int, int, int], Team] = {}

    def send(self, array: Any, peer: int, tag: int) -> Operation[Any]:
        return self._channel(self._team.rank, peer, tag).iexchange({1: array}, {})

    def receive(self, array: Any, peer: int, tag: int) -> Operation[Any]:
        return self._channel(peer, self._team.rank, tag).iexchange({}, {0: array})

    def _channel(self, source: int, target: int, tag: int) -> Team:
        key = (source, target, tag)
        if key not in self._teams:
            pair = self._team.sub([source, target], label=f"channel {tag}")
            assert pair is not None
            self._teams[key] = pair
        return self._teams[key]
