# SPDX-License-Identifier: BSD-3-Clause
"""An ordered group of sessions that communicate: its members, its sub-teams, and its collectives, which wait."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence
from ctypes import addressof, byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any

from offpath.api import structs
from offpath.api.constants import TEAM_ID_BYTES, Loss
from offpath.api.failures import ArgumentError
from offpath.api.library import check, library, quick
from offpath.api.posting import Posting

if TYPE_CHECKING:
    from typing import TypeVar

    from typing_extensions import Concatenate, ParamSpec

    from offpath.api.buffers import BufferLike
    from offpath.api.operation import Operation
    from offpath.api.session import Session
    from offpath.api.window import Window

    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")


def _waiting(
    posts: Callable[Concatenate[Any, Arguments], Operation[Result]],
) -> Callable[Concatenate[Any, Arguments], Result]:
    """The same collective, which waits."""

    @functools.wraps(posts)
    def waits(self: Any, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        return posts(self, *arguments, **options).wait()

    name, said = posts.__name__[1:], inspect.signature(posts)
    waits.__name__, waits.__qualname__, waits.__module__ = name, f"Team.{name}", __name__
    result = said.return_annotation[len("Operation[") : -1]
    vars(waits)["__signature__"] = said.replace(return_annotation=result)  # for help()
    return waits


class Team(Posting):
    """Made by offpath.init(), session.team(), team.sub() and team.split(). Use collectives of one team from one thread
    at a time: all members must call them in the same order.

    timeout: seconds that blocking calls and waits may take; None: as long as all members live.
    """

    def __init__(self, session: Session, team_id: bytes, rank: int, addresses: Sequence[bytes]):
        super().__init__(session, rank, len(addresses))
        self._id, self._addresses = bytes(team_id), list(addresses)
        self._children = 0
        self._leave: Callable[[bool], None] | None = None
        self._key = b""  # of what its members say by a store that strangers can reach (offpath.rendezvous.secret)
        if len(team_id) != TEAM_ID_BYTES:
            raise ArgumentError(f"a team id has {TEAM_ID_BYTES} bytes, not {len(team_id)}. Use secrets.token_bytes.")
        stride = max((len(address) for address in addresses), default=1)
        table = ctypes.create_string_buffer(b"".join(address.ljust(stride, b"\0") for address in addresses))
        params = structs.TeamParams(
            struct_bytes=sizeof(structs.TeamParams), rank=rank, size=self.size, address_stride_bytes=stride,
            addresses=addressof(table),
        )  # fmt: skip
        params.id[:] = team_id
        out, error = c_void_p(), structs.Error()
        with session.in_use:
            check(library().offpath_team_create(session.handle, byref(params), byref(out), byref(error)), "team", error)
        self._handle = out.value or 0

    @property
    def nodes(self) -> int:
        """On how many nodes the members live."""
        with self._used():
            return int(quick().offpath_team_nodes(self._handle))

    @property
    def broken(self) -> bool:
        """Whether a member, or a service, was lost: then nothing more can be done on this team."""
        with self._used():
            return bool(quick().offpath_team_broken(self._handle))

    def lost(self) -> dict[int, str]:
        """Members that are known to be lost, and how: service, silence, process or connection."""
        marks = (ctypes.c_uint8 * self.size)()
        with self._used():
            quick().offpath_team_lost(self._handle, marks)
        return {rank: Loss(mark).name.lower() for rank, mark in enumerate(marks) if mark != Loss.NONE}

    def sub(self, ranks: Sequence[int], *, label: str | None = None) -> Team | None:
        """A team of these members, in this order; None for those that are not named. All members call it alike. It does
        not communicate: the new id follows from this team's, and from how many were made before; with a label, which
        no other may have, from that, and those that are not named need not call it."""
        self._children += label is None
        members = [self._member(rank) for rank in ranks]
        if len(set(members)) != len(members) or not members:
            raise ArgumentError(f"{list(ranks)[:8]} is no list of different members. Name each once.")
        named = hashlib.blake2b(key=self._id, digest_size=TEAM_ID_BYTES)
        named.update(repr((self._children if label is None else label, members)).encode())  # a text is no number
        if self.rank not in members:
            return None
        team = Team(self.session, named.digest(), members.index(self.rank), [self._addresses[rank] for rank in members])
        team.timeout = self.timeout
        return team

    def split(self, color: int, key: int = 0) -> Team | None:
        """A team for each color, its members in the order of their keys; a negative color: none."""
        from array import array

        mine, all_of_them = array("q", [color, key]), array("q", bytes(16 * self.size))
        self.allgather(mine, all_of_them)
        pairs = list(zip(all_of_them[::2], all_of_them[1::2]))
        ranks = sorted((rank for rank in range(self.size) if pairs[rank][0] == color), key=lambda rank: pairs[rank][1])
        if color < 0:
            self._children += 1
            return None
        return self.sub(ranks)

    def window(self, memory: BufferLike | None) -> Window:
        """Opens memory (of any length, or None) of every member to the others; all members call it, and it waits for
        all."""
        from offpath.api.window import Window

        return Window(self, memory)

    barrier = _waiting(Posting.ibarrier)
    bcast = _waiting(Posting.ibcast)
    allreduce = _waiting(Posting.iallreduce)
    reduce = _waiting(Posting.ireduce)
    reduce_scatter = _waiting(Posting.ireduce_scatter)
    scan = _waiting(Posting.iscan)
    exscan = _waiting(Posting.iexscan)
    allgather = _waiting(Posting.iallgather)
    allgatherv = _waiting(Posting.iallgatherv)
    alltoall = _waiting(Posting.ialltoall)
    alltoallv = _waiting(Posting.ialltoallv)
    gather = _waiting(Posting.igather)
    scatter = _waiting(Posting.iscatter)
    exchange = _waiting(Posting.iexchange)

    def close(self) -> None:
        """Lets go of the team. Of the one that offpath.init() made: waits for all members, and detaches."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave(True)
        self._destroy()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._leave is not None:  # others may never come
            leave, self._leave = self._leave, None
            leave(False)
        self.close()

    def __repr__(self) -> str:
        return f"<offpath.Team member {self.rank} of {self.size}>"

    def __del__(self) -> None:
        if self._handle and self.session.mine:
            self._destroy()
