# SPDX-License-Identifier: BSD-3-Clause
"""What teams, operations and memory need of a session: its handle while in use, and operations that were dropped."""

from __future__ import annotations

import os
import time
import weakref
from typing import Any

from offpath.api.constants import Status
from offpath.api.failures import StateError
from offpath.api.library import library, quick

_CLOSE_PATIENCE_S = 10.0
_forks = [0]  # that made this process; a session is of the process that attached


class _InUse:
    """`with session.in_use as handle:` keeps close() of another thread away."""

    __slots__ = ("session", "users")

    def __init__(self, session: Attachment):
        self.session = weakref.proxy(session)
        self.users: list[None] = []  # appending is one step of the interpreter

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


class Attachment:
    def __init__(self) -> None:
        self.handle = 0
        self.generation = _forks[0]
        self.in_use = _InUse(self)
        self._handles: dict[int, None] = {}
        self._given_up: list[tuple[int, Any]] = []
        self.savings: dict[Any, None] = {}  # of saving.py, under way

    @property
    def closed(self) -> bool:
        return not self.handle

    @property
    def mine(self) -> bool:
        """Whether it is attached, and by this process."""
        return bool(self.handle) and self.generation == _forks[0]

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


def _forked() -> None:
    _forks[0] += 1


os.register_at_fork(after_in_child=_forked)
