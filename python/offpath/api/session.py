# SPDX-License-Identifier: BSD-3-Clause
"""The attachment of this process to its node's service."""

from __future__ import annotations

import atexit
import os
import weakref
from ctypes import byref, c_size_t, c_void_p, create_string_buffer, sizeof
from typing import TYPE_CHECKING, Any

from offpath.api import structs
from offpath.api.attachment import Attachment
from offpath.api.constants import ADDRESS_MAX_BYTES, ATTACH_NODE_ONLY, TOKEN_BYTES
from offpath.api.failures import ArgumentError, StateError
from offpath.api.library import check, library, quick
from offpath.api.memory import lend
from offpath.api.task import Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing
    from numpy.typing import ArrayLike

    from offpath.api.buffers import BufferLike
    from offpath.api.memory import Shape
    from offpath.api.operation import Operation
    from offpath.api.saving import Path, Saving
    from offpath.api.task import Function, Task, Unchanged

_open: weakref.WeakSet[Session] = weakref.WeakSet()
_default: list[weakref.ref[Session]] = []


class Session(Attachment):
    """Made by offpath.attach() and offpath.init(). Any thread may use it; a forked child may not."""

    def __init__(self, token: bytes, *, cores: str | None, node_only: bool, node_sessions: int):
        super().__init__()
        self._tasks: Tasks | None = None
        if len(token) != TOKEN_BYTES:
            raise ArgumentError(
                f"a job token has {TOKEN_BYTES} bytes, not {len(token)}. Use secrets.token_bytes({TOKEN_BYTES})."
            )
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
    def alive(self) -> bool:
        """Whether the service is known to live. Never blocks."""
        if not self.mine:
            return False
        with self.in_use:
            return bool(quick().offpath_session_alive(self.handle))

    @property
    def address(self) -> bytes:
        """What other members need to make a team with this one."""
        text, length = create_string_buffer(ADDRESS_MAX_BYTES), c_size_t()
        with self.in_use:
            check(library().offpath_session_address(self.handle, text, len(text), byref(length)), "address")
        return text.raw[: length.value]

    @property
    def shares_memory(self) -> bool:
        """Whether the service works in mapped memory itself; not where it is on another machine."""
        with self.in_use:
            return bool(library().offpath_session_shares_memory(self.handle))

    def counters(self) -> dict[str, int]:
        """What the service did for this process, by the names of offpath_session_counters_t."""
        out = structs.SessionCounters(struct_bytes=sizeof(structs.SessionCounters))
        with self.in_use:
            check(library().offpath_session_counters(self.handle, byref(out)), "counters")
        return {name: getattr(out, name) for name, *_ in out._fields_[1:]}

    def time_operations(self, on: bool = True) -> None:
        """Whether operations posted from now on have times()."""
        with self.in_use:
            library().offpath_session_time_operations(self.handle, on)

    def empty(self, shape: Shape, dtype: numpy.typing.DTypeLike = float) -> numpy.typing.NDArray[Any]:
        """An array (of zeros) in memory that the service maps, too. It lives as long as it is used, session or not."""
        return lend(self, shape, dtype)

    def save(self, path: Path, array: ArrayLike) -> Saving:
        """Has the service write an array to a file of NumPy's format. It must not change before that is done."""
        from offpath.api import saving

        return saving.save(self, path, array)

    def close(self) -> None:
        """Detaches, once what is being saved is. Operations under way are abandoned, and their peers fail: close when
        theirs are done, too."""
        if self.mine and self.savings:
            from offpath.api import saving

            saving.look_at_all(self, None)
        super().close()

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

    def task(
        self, function: Function, *arguments: Any, inputs: Sequence[BufferLike | Unchanged] = (),
        inouts: Sequence[BufferLike] = (), outputs: Sequence[BufferLike] = (), after: Sequence[Operation[Any]] = (),
        options: Mapping[str, Any] | None = None, argument: bytes = b"", signature: str | None = None,
        priority: int = 0, limit: float | None = None,
    ) -> Task:  # fmt: skip
        """Runs a function in an executor of the service, next to the program.

        function: "library.so:symbol", called with `argument` and the arrays as ranges, inputs first, then inouts, then
        outputs; `signature` is compared. Or a Python function, called with these arrays, then the arguments, then the
        options by name; its result is the task's. An input may be offpath.Unchanged(array, version). after: operations
        that have to be done before. priority: higher is first. limit: seconds after which it is ended.
        """
        if self._tasks is None:
            self._tasks = Tasks()
        return self._tasks.submit(
            self, function, arguments, options, inputs=inputs, inouts=inouts, outputs=outputs, after=after,
            argument=argument, signature=signature, priority=priority, limit=limit,
        )  # fmt: skip


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
    return last().empty(shape, dtype)


def task(function: Function, *arguments: Any, **options: Any) -> Task:
    """session.task() of the session that this process attached last. Raises StateError where there is none."""
    return last().task(function, *arguments, **options)


def save(path: Path, array: ArrayLike) -> Saving:
    """session.save() of the session that this process attached last. Raises StateError where there is none."""
    return last().save(path, array)


def last() -> Session:
    session = _default[0]() if _default else None
    if session is None or not session.mine:
        raise StateError("this process is not attached (memory and tasks are a session's). Call offpath.init() first.")
    return session


@atexit.register
def _close_all() -> None:
    for session in list(_open):
        session.close()
