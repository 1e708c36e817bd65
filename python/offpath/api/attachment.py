# SPDX-License-Identifier: BSD-3-Clause
"""What teams, operations and memory need of a session: its handle while in use, and operations that were dropped."""

from __future__ import annotations

import os
import time
from typing import Any

from offpath.api.constants import Status
from offpath.api.failures import StateError
from offpath.api.library import library, quick

_CLOSE_PATIENCE_S = 10.0
_forks = [0]  # that made this process; a session is of the process that attached


class Attachment:
    def __init__(self) -> None:
        self.handle = 0
        self.generation = _forks[0]
        self._users = bytearray(1)  # each memoryview of it is a call that is under way
        self._closing = False
        self._handles: dict[int, None] = {}
        self._given_up: list[tuple[int, Any]] = []
        self.savings: dict[Any, None] = {}  # of saving.py, under way

    @property
    def closed(self) -> bool:
        return self._closing or not self.handle

    @property
    def in_use(self) -> memoryview:
        """`with session.in_use:` keeps close() of another thread away. Nothing in it runs in the interpreter when the
        block is left, so Ctrl-C cannot come in between and leave the session in use for ever."""
        use = memoryview(self._users)
        if self.handle and not self._closing and self.generation == _forks[0]:  # mine, without a call
            return use
        use.release()
        raise StateError(
            "the session is closed. Attach anew." if self.closed else
            "this session belongs to the parent process (a forked child cannot use its attachment). Attach anew here."
        )  # fmt: skip

    @property
    def mine(self) -> bool:
        """Whether it is attached, and by this process."""
        return not self.closed and self.generation == _forks[0]

    def events(self) -> int:
        """How many of its operations have ended so far; wraps. For sleep()."""
        with self.in_use:
            return int(quick().offpath_session_events(self.handle))

    def sleep(self, seen: int, seconds: float) -> None:
        """Until there are more than these, or so long (a second at most)."""
        with self.in_use:
            library().offpath_session_sleep(self.handle, seen, int(seconds * 1e9))

    def close(self) -> None:
        """Detaches. Operations under way are abandoned, and their peers fail: close when theirs are done, too."""
        if self.generation != _forks[0]:
            self.handle = 0
        if not self.mine:
            return
        self._await_users()
        try:
            handle, self.handle = self.handle, 0
            for operation in list(self._handles):
                library().offpath_op_free(operation)
            self._handles.clear()
            library().offpath_session_detach(handle)
            self._given_up.clear()  # the service has let go of their memory
        finally:
            self._closing = False

    def _await_users(self) -> None:
        """From then on nobody comes any more."""
        self._closing, end = True, time.monotonic() + _CLOSE_PATIENCE_S
        try:
            while not self._unused():
                if time.monotonic() > end:
                    raise StateError(
                        "the session is in use (another thread is in one of its calls). Close it after that."
                    )
                time.sleep(0.001)
        except BaseException:
            self._closing = False
            raise

    def _unused(self) -> bool:
        try:
            self._users.clear()  # refused as long as there is a view
        except BufferError:
            return False
        return True

    def hold(self, handle: int) -> None:
        """Of a new operation. Those that were dropped under way are looked after here."""
        self._handles[handle] = None
        if self._given_up:
            waiting, self._given_up = self._given_up, []
            for operation, keep in waiting:
                self.give_up(operation, keep)

    def give_up(self, operation: int, keep: Any) -> None:
        """Nobody wants it any more; its memory stays until the service is done with it."""
        with memoryview(self._users):
            if self._closing:  # the service may still be at it
                self._given_up.append((operation, keep))
            elif not self.mine:
                return
            elif keep is not None and quick().offpath_op_test(operation) == Status.IN_PROGRESS:
                self._given_up.append((operation, keep))
            elif self._handles.pop(operation, self) is None:
                library().offpath_op_free(operation)


def _forked() -> None:
    _forks[0] += 1


os.register_at_fork(after_in_child=_forked)
