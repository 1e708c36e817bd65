# SPDX-License-Identifier: BSD-3-Clause
"""What torch waits for: an operation of a team, and what is to be done once it is over."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch._C._distributed_c10d import Work as TorchWork

from offpath.api.attachment import Attachment
from offpath.api.failures import StateError, WaitTimeout
from offpath.api.operation import Operation

_SLICE_S = 0.2
_MOST_PASSED = 2  # works that are not over, looked at when another begins
_MOST_FREE = 2  # threads that tell nobody


class Work(TorchWork):  # type: ignore[misc]
    """Over when all its operations are and `finish` has run, once, in whichever thread finds it first."""

    def __init__(self, operations: Sequence[Operation[Any]], result: list[Any], finish: Callable[[], None] | None):
        super().__init__()
        self._operations, self._result, self._finish = operations, result, finish
        self._limit = operations[0].timeout if operations else None
        self.session = operations[0]._session if operations else None
        self.until = math.inf  # then the future is told that it takes too long
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._error: Exception | None = None
        self._future: Any = None
        self._told = False
        _held.add(self)

    def wait(self, timeout: Any = None) -> bool:
        seconds = timeout.total_seconds() if timeout is not None and timeout.total_seconds() > 0 else self._limit
        self._end(self._outcome(seconds))
        if self._error is not None:
            raise self._error
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        if not self._over.is_set() and self._is_done():
            self._end(self._outcome(0.0))
        return self._over.is_set()

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Any:
        return self._error

    def result(self) -> list[Any]:
        self.wait()
        return self._result

    def get_future(self) -> Any:
        self.is_completed()  # what is over needs nobody who waits
        with self._lock:
            if self._future is None:
                if self._limit is not None:
                    self.until = time.monotonic() + self._limit
                if not self._over.is_set():
                    _completer.add(self)
                self._future = torch.futures.Future()
        if self.is_completed():  # what ends before somebody waits wakes nobody
            self._tell(self._error)
        return self._future

    def is_due(self) -> bool:
        """Whether conclude() has anything to do."""
        return self._over.is_set() or self._is_done() or time.monotonic() >= self.until

    def conclude(self) -> None:
        """Ends it; where it takes too long, its future alone hears of that, and the operations go on."""
        try:
            self._end(self._outcome(0.0, self._limit))
        except WaitTimeout as late:
            self._tell(late)

    def _is_done(self) -> bool:
        try:
            return all(operation.done for operation in self._operations)
        except StateError:  # the session was closed: who waits hears of it
            return True

    def _outcome(self, seconds: float | None, limit: float | None = None) -> Exception | None:
        """What its operations failed with. Raises WaitTimeout where they go on after so many seconds in all; it names
        the limit, if another one was passed before."""
        end = None if seconds is None else time.monotonic() + seconds
        for operation in self._operations:
            try:
                operation.wait(None if end is None else max(0.0, end - time.monotonic()))
            except WaitTimeout:
                raise operation._too_late(seconds if limit is None else limit) from None
            except Exception as error:
                return error
        return None

    def _end(self, error: Exception | None) -> None:
        with self._lock:
            if self._over.is_set():
                return
            try:
                if error is None and self._finish is not None:
                    self._finish()
            except Exception as failed:
                error = failed
            self._error = error
            self._operations, self._finish = (), None
            self._over.set()
            waited_for = self._future is not None
        _held.discard(self)
        if waited_for:
            self._tell(error)

    def _tell(self, error: Exception | None) -> None:
        with self._lock:
            told, self._told = self._told, True
        if told:
            return
        if error is None:  # without the lock: whoever is told may ask back
            self._future.set_result(self._result)
        else:
            self._future._set_unwrap_func(_Failed.tell)
            self._future.set_result(_Failed(error))


class _Failed:
    """The value of a future that failed: who asks for it gets the error, as by Future.set_exception(). C++ does not ask
    (DistributedDataParallel): it looks for tensors, by pickling, and crashed where there were none."""

    def __init__(self, error: Exception):
        self._error = error

    def tell(self) -> Any:
        raise self._error

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise self._error


def together(begun: Iterable[tuple[Operation[Any], Callable[[], None] | None]], result: Sequence[Any]) -> Work:
    """The work of several operations, each with what is to be done once all are over."""
    pairs = list(begun)

    def finish() -> None:
        for _, end in pairs:
            if end is not None:
                end()

    return Work([operation for operation, _ in pairs], list(result), finish)


class _Held:
    """Works that are not over: torch holds the C++ half of a work only, which knows nothing without this one. A program
    need not wait for what it sends, so those that are over are let go of when others begin. Those that are not go to
    the end: one that never ends keeps no others here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works: dict[Work, None] = {}

    def add(self, work: Work) -> None:
        passed = 0
        while passed < _MOST_PASSED and (first := self._turn()) is not None:
            if first._future is None and first.is_completed():
                self.discard(first)
            else:  # who has a future is told, and then let go of
                passed += 1
        with self._lock:
            self._works[work] = None

    def discard(self, work: Work) -> None:
        with self._lock:
            self._works.pop(work, None)

    def _turn(self) -> Work | None:
        """The first, which is the last from now on."""
        with self._lock:
            first = next(iter(self._works), None)
            if first is not None:
                self._works[first] = self._works.pop(first)
            return first


_held = _Held()


class _Completer:
    """Tells futures, by threads that live while there are some. One of them watches: it sleeps until an operation ends
    or time is up, and takes a work that is due. What it tells may begin other works, and wait for their futures or for
    older ones (PowerSGD does), so another thread is free to watch before it tells.

    They are no daemons: one that the interpreter's end meets inside torch ends the whole process (std::terminate).
    Works that are not over when the program ends are left after a slice.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watching = threading.Lock()
        self._works: dict[Work, None] = {}  # the oldest first
        self._free = 0  # threads that watch, or wait for their turn to

    def add(self, work: Work) -> None:
        with self._lock:
            self._works[work] = None
            try:
                self._provide()
            except BaseException:  # the system has no thread left
                del self._works[work]
                raise

    def _provide(self) -> None:
        """With the lock: somebody watches as long as there are works."""
        if self._works and self._free < 1:
            threading.Thread(target=self._run, name="offpath-torch", daemon=False).start()
            self._free += 1

    def _run(self) -> None:
        while (work := self._take()) is not None:
            work.conclude()
            with self._lock:
                if self._free >= _MOST_FREE:
                    return
                self._free += 1

    def _take(self) -> Work | None:
        """The oldest that is due. None: there is nothing to wait for."""
        with self._watching:
            while works := self._waiting():
                session = works[0].session
                seen = _events(session)
                works = self._all()  # once more: those that come from now on look for themselves
                for work in works:
                    if work.is_due():
                        self._remove(work)
                        return work
                _sleep(session, seen, min(work.until for work in works) - time.monotonic())
        return None

    def _waiting(self) -> list[Work]:
        """Without any this thread is free no more."""
        with self._lock:
            works = list(self._works) if threading.main_thread().is_alive() else []
            self._free -= not works
            return works

    def _all(self) -> list[Work]:
        with self._lock:
            return list(self._works)

    def _remove(self, work: Work) -> None:
        with self._lock:
            del self._works[work]
            self._free -= 1
            with contextlib.suppress(RuntimeError):  # no thread is left: the others have to wait for this one
                self._provide()


def _events(session: Attachment) -> int:
    with contextlib.suppress(StateError):  # closed: its works are due
        return session.events()
    return 0


def _sleep(session: Attachment, seen: int, seconds: float) -> None:
    with contextlib.suppress(StateError):
        session.sleep(seen, max(0.0, min(_SLICE_S, seconds)))


_completer = _Completer()
