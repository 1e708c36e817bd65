# SPDX-License-Identifier: BSD-3-Clause
"""The attachment of this process to its node's service."""

from __future__ import annotations

import atexit
import os
import time
import weakref
from ctypes import byref, c_size_t, c_void_p, create_string_buffer, sizeof
from typing import TYPE_CHECKING, Any

from offpath.api import structs
from offpath.api.constants import ADDRESS_MAX_BYTES, ATTACH_NODE_ONLY, TOKEN_BYTES, Status
from offpath.api.failures import ArgumentError, StateError
from offpath.api.library import check, library, quick
from offpath.api.memory import lend

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing

    from offpath.api.memory import Shape
    from offpath.api.team import Team

_CLOSE_PATIENCE_S = 10.0
_forks = [0]
_open: weakref.WeakSet[Session] = weakref.WeakSet()
_default: list[weakref.ref[Session]] = []


class _InUse:
    """`with session.in_use as handle:` keeps close() of another thread away. Appending is one step of the
    interpreter."""

    __slots__ = ("session", "users")

    def __init__(self, session: Session):
        self.session = weakref.proxy(session)
        self.users: list[None] = []

    def __enter__(self) -> int:
        self.users.append(None)
        handle: int = self.session.handle
        if handle and self.session.generation == _forks[0]:
            return handle
        self.users.pop()
        raise StateError(
            "the session is closed. Attach anew." if not handle else
            "this session belongs to the parent process (a forked child cannot use its attachment). Attach anew here."
        )  # fmt: skip

    def __exit__(self, *_: object) -> None:
        self.users.pop()


class Session:
    """Made by offpath.attach() and offpath.init(). Any thread may use it; a forked child may not."""

    def __init__(self, token: bytes, *, cores: str | None, node_only: bool, node_sessions: int):
        self.handle = 0
        if len(token) != TOKEN_BYTES:
            raise ArgumentError(
                f"a job token has {TOKEN_BYTES} bytes, not {len(token)}. Use secrets.token_bytes({TOKEN_BYTES})."
            )
        self.generation = _forks[0]
        self.in_use = _InUse(self)
        self._handles: dict[int, None] = {}
        self._given_up: list[tuple[int, Any]] = []
        params = structs.AttachParams(
            struct_bytes=sizeof(structs.AttachParams),
            flags=ATTACH_NODE_ONLY if node_only else 0,
            service_cores=cores.encode() if cores else None,
            node_sessions_count=node_sessions,
        )
        params.job_token[:] = token
        out, error = c_void_p(), structs.Error()
        check(library().offpath_session_attach(byref(params), byref(out), byref(error)), "attach", error)
        self.handle = out.value or 0
        _open.add(self)

    @property
    def closed(self) -> bool:
        return not self.handle

    @property
    def mine(self) -> bool:
        """Whether it is attached, and by this process."""
        return bool(self.handle) and self.generation == _forks[0]

    @property
    def alive(self) -> bool:
        """Whether the service is known to live. Never blocks."""
        if not self.mine:
            return False
        with self.in_use as handle:
            return bool(quick().offpath_session_alive(handle))

    @property
    def address(self) -> bytes:
        """What other members need to make a team with this one."""
        text, length = create_string_buffer(ADDRESS_MAX_BYTES), c_size_t()
        with self.in_use as handle:
            check(library().offpath_session_address(handle, text, len(text), byref(length)), "address")
        return text.raw[: length.value]

    @property
    def shares_memory(self) -> bool:
        """Whether the service works in mapped memory itself; not where it is on another machine."""
        with self.in_use as handle:
            return bool(library().offpath_session_shares_memory(handle))

    def counters(self) -> dict[str, int]:
        """What the service did for this process, by the names of offpath_session_counters_t."""
        out = structs.Counters(struct_bytes=sizeof(structs.Counters))
        with self.in_use as handle:
            check(library().offpath_session_counters(handle, byref(out)), "counters")
        return {name: getattr(out, name) for name, *_ in out._fields_[1:]}

    def time_operations(self, on: bool = True) -> None:
        """Whether operations posted from now on have times()."""
        with self.in_use as handle:
            library().offpath_session_time_operations(handle, on)

    def empty(self, shape: Shape, dtype: numpy.typing.DTypeLike = float) -> numpy.typing.NDArray[Any]:
        """An array (of zeros) in memory that the service maps, too. It lives as long as it is used, session or not."""
        return lend(self, shape, dtype)

    def team(self, team_id: bytes, rank: int, addresses: Sequence[bytes]) -> Team:
        """This member's end of a team. All members give the same random id (16 bytes) and the same addresses."""
        from offpath.api.team import Team

        return Team(self, team_id, rank, addresses)

    def close(self) -> None:
        """Detaches. Operations under way are abandoned, and their peers fail: close when theirs are done, too."""
        handle, self.handle = self.handle, 0
        if not handle or self.generation != _forks[0]:
            return
        end = time.monotonic() + _CLOSE_PATIENCE_S
        while self.in_use.users:
            if time.monotonic() > end:
                self.handle = handle
                raise StateError("the session is in use (another thread is in one of its calls). Close it after that.")
            time.sleep(0.001)
        for operation in list(self._handles):
            library().offpath_op_free(operation)
        self._handles.clear()
        library().offpath_session_detach(handle)
        self._given_up.clear()  # the service has let go of their memory

    def hold(self, handle: int) -> None:
        """Of a new operation. Those that were dropped under way are looked after here."""
        self._handles[handle] = None
        if self._given_up:
            waiting, self._given_up = self._given_up, []
            for operation, keep in waiting:
                self.give_up(operation, keep)

    def give_up(self, operation: int, keep: Any) -> None:
        """Nobody wants it any more; its memory stays until the service is done with it."""
        users = self.in_use.users
        users.append(None)
        try:
            if not self.mine:
                return
            if keep is not None and quick().offpath_op_test(operation) == Status.IN_PROGRESS:
                self._given_up.append((operation, keep))
            elif self._handles.pop(operation, self) is None:
                library().offpath_op_free(operation)
        finally:
            users.pop()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "attached" if self.alive else "lost"
        return f"<offpath.Session {state}, process {os.getpid()}>"

    def __del__(self) -> None:
        if self.handle:
            self.close()


def attach(token: bytes, *, cores: str | None = None, node_only: bool = False, node_sessions: int = 0) -> Session:
    """Attaches to this node's service of the job that `token` (32 random bytes) names; starts it when there is none.

    cores: where the service may run if this call starts it ("2,3"); node_only: no team will have members on other
    nodes; node_sessions: how many sessions this node will have (0: not known). Raises NoServiceError, AccessError,
    NoMemoryError.
    """
    session = Session(token, cores=cores, node_only=node_only, node_sessions=node_sessions)
    _default[:] = [weakref.ref(session)]
    return session


def empty(shape: Shape, dtype: numpy.typing.DTypeLike = float) -> numpy.typing.NDArray[Any]:
    """session.empty() of the session that this process attached last. Raises StateError where there is none."""
    session = _default[0]() if _default else None
    if session is None or not session.mine:
        raise StateError("this process is not attached (mapped memory is the session's). Call offpath.init() first.")
    return session.empty(shape, dtype)


def _forked() -> None:
    _forks[0] += 1


@atexit.register
def _close_all() -> None:
    for session in list(_open):
        session.close()


os.register_at_fork(after_in_child=_forked)
