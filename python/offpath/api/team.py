# SPDX-License-Identifier: BSD-3-Clause
"""An ordered group of sessions that communicate: its members, its sub-teams, and its collectives, which wait."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any

from offpath.api import structs
from offpath.api.constants import TEAM_ID_BYTES, Loss
from offpath.api.failures import ArgumentError
from offpath.api.library import check, library, quick
from offpath.api.posting import Posting

if TYPE_CHECKING:
    from offpath.api.buffers import BufferLike
    from offpath.api.session import Session
    from offpath.api.window import Window


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
        with session.in_use as handle:
            check(library().offpath_team_create(handle, byref(params), byref(out), byref(error)), "team", error)
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
        """Members that are known to be lost, and how: service, silence or process."""
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
        named.update(",".join(map(str, (label or self._children, *members))).encode())
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

    def barrier(self) -> None:
        self.ibarrier().wait()

    def bcast(self, buffer: BufferLike, root: int = 0, *, algorithm: str = "default") -> Any:
        return self.ibcast(buffer, root, algorithm=algorithm).wait()

    def allreduce(
        self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum", *, algorithm: str = "default"
    ) -> Any:
        return self.iallreduce(send, recv, op, algorithm=algorithm).wait()

    def reduce(
        self,
        send: BufferLike,
        recv: BufferLike | None = None,
        op: str = "sum",
        root: int = 0,
        *,
        algorithm: str = "default",
    ) -> Any:
        return self.ireduce(send, recv, op, root, algorithm=algorithm).wait()

    def reduce_scatter(
        self, send: BufferLike, recv: BufferLike | None = None, counts: Sequence[int] | None = None, op: str = "sum"
    ) -> Any:
        return self.ireduce_scatter(send, recv, counts, op).wait()

    def scan(self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum") -> Any:
        return self.iscan(send, recv, op).wait()

    def exscan(self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum") -> Any:
        return self.iexscan(send, recv, op).wait()

    def allgather(self, send: BufferLike, recv: BufferLike | None = None, *, algorithm: str = "default") -> Any:
        return self.iallgather(send, recv, algorithm=algorithm).wait()

    def allgatherv(
        self, send: BufferLike, counts: Sequence[int], recv: BufferLike | None = None,
        displs: Sequence[int] | None = None, *, algorithm: str = "default",
    ) -> Any:  # fmt: skip
        return self.iallgatherv(send, counts, recv, displs, algorithm=algorithm).wait()

    def alltoall(self, send: BufferLike, recv: BufferLike | None = None) -> Any:
        return self.ialltoall(send, recv).wait()

    def alltoallv(
        self, send: BufferLike, send_counts: Sequence[int], recv: BufferLike, recv_counts: Sequence[int],
        send_displs: Sequence[int] | None = None, recv_displs: Sequence[int] | None = None,
    ) -> Any:  # fmt: skip
        return self.ialltoallv(send, send_counts, recv, recv_counts, send_displs, recv_displs).wait()

    def gather(self, send: BufferLike, recv: BufferLike | None = None, root: int = 0) -> Any:
        return self.igather(send, recv, root).wait()

    def scatter(self, send: BufferLike | None, recv: BufferLike, root: int = 0) -> Any:
        return self.iscatter(send, recv, root).wait()

    def exchange(self, send: Mapping[int, BufferLike], recv: Mapping[int, BufferLike]) -> Mapping[int, BufferLike]:
        return self.iexchange(send, recv).wait()

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
