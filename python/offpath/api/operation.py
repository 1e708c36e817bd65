# SPDX-License-Identifier: BSD-3-Clause
"""An operation under way. It holds its buffers until the service is done with them, whoever else drops it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Sequence
from ctypes import byref, c_int, c_void_p, create_string_buffer, sizeof
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from offpath.api import structs
from offpath.api.constants import Status
from offpath.api.failures import ArgumentError, StateError, WaitTimeout, failure
from offpath.api.library import check, library, quick

if TYPE_CHECKING:
    from offpath.api.attachment import Attachment

Result = TypeVar("Result")

_SLICE_NS = 100_000_000  # so often a wait looks for Ctrl-C and for a session that was closed
_OK, _IN_PROGRESS = int(Status.OK), int(Status.IN_PROGRESS)


class Times(NamedTuple):
    """When things happened to an operation, in the clock of time.monotonic_ns(); 0: it did not happen."""

    last_peer: int
    posted_ns: int
    started_ns: int
    first_byte_ns: int
    done_ns: int


class Operation(Generic[Result]):
    """What a non-blocking call returns. Any thread may test it and wait for it; dropping it is allowed at any time.

    `with team.iallreduce(x) as op:` waits at the end of the block, unless that was left by an exception.
    `await team.iallreduce(x)` lets asyncio run others meanwhile.
    """

    __slots__ = ("__weakref__", "_handle", "_keep", "_result", "_said", "_session", "_status", "timeout")

    def __init__(self, session: Attachment, handle: int, keep: Any, result: Result, timeout: float | None):
        self._session = session
        self._handle = handle
        self._keep = keep
        self._result = result
        self._status = _IN_PROGRESS
        self._said = ""
        self.timeout = timeout

    def test(self) -> bool:
        """True once it is done. Raises what it failed with. Never blocks."""
        if self._status == _IN_PROGRESS:
            with self._session.in_use:
                status: int = quick().offpath_op_test(self._handle)
                if status == _IN_PROGRESS:
                    return False
                if status != _OK:
                    self._said = self._text()
                status = self._finish(status)
                if status == _OK:
                    self._said = ""
            self._keep = None
            self._status = status
        if self._status != _OK:
            raise self._failure(self._status)
        return True

    def _finish(self, status: int) -> int:
        """It is over, and its buffers are still there. The status that counts."""
        return status

    def _failure(self, status: int) -> BaseException:
        return failure(status, self._said)

    @property
    def done(self) -> bool:
        """Whether it is over, well or not. Does not raise what it failed with."""
        try:
            return self.test()
        except Exception:
            if self._status == _IN_PROGRESS:
                raise
            return True

    def wait(self, timeout: float | None = None) -> Result:
        """Its result, once it is there. The interpreter's lock is free meanwhile, and Ctrl-C is heard.

        Raises what it failed with; WaitTimeout after `timeout` seconds (none given: the team's, which may be none), and
        then it goes on.
        """
        timeout = self.timeout if timeout is None else timeout
        end = None if timeout is None else time.monotonic() + timeout
        while not self.test():
            left_ns = _SLICE_NS if end is None else int(min(_SLICE_NS, (end - time.monotonic()) * 1e9))
            if left_ns <= 0:
                raise self._too_late(timeout)
            with self._session.in_use:
                library().offpath_op_wait(self._handle, left_ns)
        return self._result

    def __await__(self) -> Generator[Any, None, Result]:
        """As wait(), for coroutines of asyncio. One that is cancelled leaves the operation under way."""
        return self._awaited().__await__()

    async def _awaited(self) -> Result:
        import asyncio  # most programs have no use for it

        if not self.test():
            loop, descriptor = asyncio.get_running_loop(), self.descriptor()
            over = asyncio.Event()
            loop.add_reader(descriptor, over.set)
            try:
                await asyncio.wait_for(over.wait(), self.timeout)
            except asyncio.TimeoutError:
                raise self._too_late(self.timeout) from None
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
        return self.result

    def descriptor(self) -> int:
        """A new file descriptor that can be read (select, selectors, trio) once it is over. The caller closes it."""
        if not self._handle:  # it was over at once
            end, other = os.pipe()
            os.close(other)
            return end
        out = c_int()
        with self._session.in_use:
            check(library().offpath_op_fd(self._handle, byref(out)), "a descriptor for an operation")
        return out.value

    @property
    def result(self) -> Result:
        """What wait() returns. Raises StateError before it is there."""
        if not self.test():
            raise StateError(f"there is no result yet ({self.describe()}). Call wait().")
        return self._result

    def _too_late(self, timeout: float | None) -> WaitTimeout:
        return WaitTimeout(f"not done after {timeout:g} s: {self.describe()}. Wait longer, or see what it waits for.")

    def describe(self) -> str:
        """One line for a person: what it is, and which ranks it waits for."""
        if self._said:
            return self._said
        if self._session.closed:
            return "an operation of a session that was closed"
        with self._session.in_use:
            return self._text()

    def times(self) -> Times:
        """Of a finished operation that was posted after session.time_operations(). Raises StateError of others."""
        out = structs.OpTimes(struct_bytes=sizeof(structs.OpTimes))
        with self._session.in_use:
            status = quick().offpath_op_times(self._handle, byref(out))
        if status != _OK:
            raise StateError(
                "the operation has no times (it is under way, or was not timed). Wait for it; call "
                "session.time_operations() before posting."
            )
        return Times(out.last_peer, out.posted_ns, out.started_ns, out.first_byte_ns, out.done_ns)

    def __enter__(self) -> Operation[Result]:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.wait()

    def __repr__(self) -> str:
        return f"<offpath.Operation {self.describe()}>"

    def _text(self) -> str:
        if not self._handle:
            return "an operation that was over at once"
        text = create_string_buffer(256)
        quick().offpath_op_describe(self._handle, text, len(text))
        return text.value.decode(errors="replace")

    def __del__(self) -> None:
        # Other threads cannot be inside a call with it: they would have it.
        self._session.give_up(self._handle, self._keep)


class EndedOnce(Operation[Result]):
    """Whose end has a part of this process's: one thread does that, and the others do not go on without it."""

    __slots__ = ("_lock",)

    def __init__(self, session: Attachment, handle: int, keep: Any, result: Result, timeout: float | None):
        super().__init__(session, handle, keep, result, timeout)
        self._lock = threading.RLock()

    def test(self) -> bool:
        with self._lock:
            return super().test()


def before(session: Attachment, operations: Sequence[Operation[Any]], what: str) -> Any:
    """The handles of those that `what` of this session comes after. Those that the service never had (a short file) are
    over: nothing comes after them, and what they failed with is raised."""
    if any(operation._session is not session for operation in operations):
        raise ArgumentError(f"{what} comes after operations of its own session alone. Wait for the others before.")
    handles = [operation._handle for operation in operations if operation._handle or not operation.test()]
    return (c_void_p * len(handles))(*handles)
