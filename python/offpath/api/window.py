# SPDX-License-Identifier: BSD-3-Clause
"""Windows: memory of each member that the others read and write without its help."""

from __future__ import annotations

import struct
import time
from ctypes import byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any

from offpath.api import structs
from offpath.api.buffers import Buffer
from offpath.api.collectives import reduction, same_elements
from offpath.api.constants import Operator, Remote, Status
from offpath.api.failures import ArgumentError, StateError, WaitTimeout, failure
from offpath.api.library import check, library, status_text
from offpath.api.operation import Operation

if TYPE_CHECKING:
    from offpath.api.buffers import BufferLike
    from offpath.api.posting import Posting

_NOTHING = structs.Block(0, 0, None, 0, 0)
_FLUSH_SLICE_NS = 100_000_000
_OPERATORS = {"replace": int(Operator.REPLACE), "no_op": int(Operator.NO_OP)}


class Window:
    """Made by team.window(memory). Offsets are in bytes, from the beginning of the target's memory.

    Each call is an operation: at(...) is done, in the target's memory, when it is; flush() waits for all.
    """

    def __init__(self, team: Posting, memory: BufferLike | None):
        self._handle = 0
        self.team = team
        self.memory = memory
        self._held = None if memory is None else Buffer(memory, writable=True, what="the window's memory")
        team._windows_made += 1
        params = structs.WindowParams(sizeof(structs.WindowParams), 0, team._windows_made, None, 0)
        if self._held is not None and self._held.nbytes:
            params.base, params.bytes = self._held.address, self._held.nbytes
        out, error = c_void_p(), structs.Error()
        with team._used():
            check(
                library().offpath_window_create(team._handle, byref(params), byref(out), byref(error)), "window", error
            )
        self._handle = out.value or 0
        team._windows += 1
        team.ibarrier().wait()

    def put(self, data: BufferLike, target: int, offset: int = 0) -> Operation[None]:
        """Writes it into the target's memory."""
        held = Buffer(data, what="the data")
        return self._post(Remote.PUT, target, offset, held.nbytes, send=held)

    def get(self, into: BufferLike, target: int, offset: int = 0) -> Operation[Any]:
        """Fills `into` from the target's memory."""
        held = Buffer(into, writable=True, what="the result")
        return self._post(Remote.GET, target, offset, held.nbytes, result=held)

    def accumulate(self, data: BufferLike, target: int, offset: int = 0, op: str = "sum") -> Operation[None]:
        """target = target op data, element by element, atomically. op: as of reductions, or replace."""
        held = Buffer(data, what="the data")
        return self._post(Remote.ACCUMULATE, target, offset, held.nbytes, send=held, op=op)

    def fetch(
        self, data: BufferLike, into: BufferLike, target: int, offset: int = 0, op: str = "sum"
    ) -> Operation[Any]:
        """The same, and what was there before comes into `into`. op no_op: an atomic get."""
        held, result = Buffer(data, what="the data"), Buffer(into, writable=True, what="the result")
        if held.nbytes != result.nbytes:
            raise ArgumentError(
                f"data has {held.nbytes} bytes, the result {result.nbytes} (they must agree). Pass equal ones."
            )
        same_elements(held, result)
        return self._post(Remote.GET_ACCUMULATE, target, offset, held.nbytes, send=held, result=result, op=op)

    def compare_and_swap(
        self, new: BufferLike, compare: BufferLike, into: BufferLike, target: int, offset: int = 0
    ) -> Operation[Any]:
        """One element: becomes `new` if it is `compare`, atomically; what was there before comes into `into`."""
        fresh, wanted, result = Buffer(new, what="new"), Buffer(compare, what="compare"), Buffer(into, writable=True)
        if not fresh.itemsize == fresh.nbytes == wanted.nbytes == result.nbytes:
            raise ArgumentError("compare_and_swap takes one element of the same type each. Pass arrays of one element.")
        same_elements(fresh, wanted)
        same_elements(fresh, result)
        both = bytes(memoryview(fresh.owner).cast("B")) + bytes(memoryview(wanted.owner).cast("B"))
        element = int(fresh.element("new"))
        return self._post(
            Remote.COMPARE_AND_SWAP, target, offset, fresh.nbytes, send=Buffer(both), result=result, element=element
        )

    def put_signal(self, data: BufferLike, target: int, offset: int, signal: int) -> Operation[None]:
        """Writes the data and then, once all of it is there, the 8 bytes of `signal` behind it."""
        held, word = Buffer(data, what="the data"), Buffer(struct.pack("=Q", signal))
        return self._post(Remote.PUT_SIGNAL, target, offset, held.nbytes + 8, send=held, signal=word)

    def lock(self, target: int, shared: bool = False) -> None:
        """Holds the target's part, against others who lock it, until unlock()."""
        self._post(Remote.LOCK_SHARED if shared else Remote.LOCK_EXCLUSIVE, target, 0, 0).wait()

    def unlock(self, target: int) -> None:
        self.flush()
        self._post(Remote.UNLOCK, target, 0, 0).wait()

    def flush(self) -> None:
        """Waits until all operations posted here are done. Raises the first failure since it last did; WaitTimeout
        after the team's timeout."""
        timeout = self.team.timeout
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._used():
                status = library().offpath_window_flush(self._handle, _FLUSH_SLICE_NS)
            if status == Status.OK:
                return
            if status != Status.IN_PROGRESS:
                raise failure(status, f"flush: {status_text(status)}")
            if end is not None and time.monotonic() > end:
                raise WaitTimeout(f"operations of the window are not done after {timeout:g} s. See what targets do.")

    def close(self) -> None:
        """Closes it on all members, which all call it: waits for them first. Raises what flush() does."""
        if self._handle and self.team.session.mine:
            try:
                self.flush()
            finally:
                try:
                    self.team.ibarrier().wait()
                finally:  # also of a team that has lost a member
                    self._destroy()

    def __enter__(self) -> Window:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()

    def _post(
        self, kind: Remote, target: int, offset: int, nbytes: int, *, send: Buffer | None = None,
        result: Buffer | None = None, op: str | None = None, element: int = 0, signal: Buffer | None = None,
    ) -> Operation[Any]:  # fmt: skip
        target = self.team._member(target)
        if not 0 <= offset < 1 << 63:
            raise ArgumentError(f"offset {offset} lies before the window, or behind any. Give another.")
        operator = 0
        if op is not None and send is not None:
            if op in _OPERATORS:
                operator, element = _OPERATORS[op], int(send.element("the data"))
            else:
                operator, element = reduction(op, send)
        params = structs.Remote(
            sizeof(structs.Remote), int(kind), target, operator, element, 0, offset, nbytes, _block(send),
            _block(result), None, 0, 0, signal.address if signal else None,
        )  # fmt: skip
        out = c_void_p()
        with self._used():
            status = library().offpath_remote(self._handle, byref(params), byref(out))
        if status != Status.OK:
            raise failure(status, f"{kind.name.lower()} on member {target}: {status_text(status)}")
        session = self.team.session
        session.hold(out.value or 0)
        fetched = result.owner if result is not None else None
        return Operation(session, out.value or 0, [self._held, send, result, signal], fetched, self.team.timeout)

    def _used(self) -> Any:
        if not self._handle and not self.team.session.closed:
            raise StateError("the window is closed. Open another.")
        return self.team.session.in_use

    def _destroy(self) -> None:
        handle, self._handle = self._handle, 0
        with self.team.session.in_use:
            library().offpath_window_destroy(handle)
        self._held = None
        self.team._window_closed()

    def __del__(self) -> None:
        if self._handle and self.team.session.mine:
            self._destroy()


def _block(buffer: Buffer | None) -> structs.Block:
    return _NOTHING if buffer is None else structs.Block(0, 0, buffer.address or None, buffer.nbytes, 0)
