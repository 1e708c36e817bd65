# SPDX-License-Identifier: BSD-3-Clause
"""What torch waits for: an operation of a team, and what is to be done once it is over."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch._C._distributed_c10d import Work as TorchWork

from offpath.api.failures import StateError, WaitTimeout
from offpath.api.operation import Operation

_SLICE_S = 0.2


class Work(TorchWork):  # type: ignore[misc]
    """Over when all its operations are and `finish` has run, once, in whichever thread finds it first."""

    def __init__(self, operations: Sequence[Operation[Any]], result: list[Any], finish: Callable[[], None] | None):
        super().__init__()
        self._operations, self._result, self._finish = operations, result, finish
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._error: Exception | None = None
        self._future: Any = None
        _held.add(self)

    def wait(self, timeout: Any = None) -> bool:
        seconds = timeout.total_seconds() if timeout is not None and timeout.total_seconds() > 0 else None
        self._await(seconds)
        if self._error is not None:
            raise self._error
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        if not self._over.is_set() and all(operation.done for operation in self._operations):
            self._await(None)
        return self._over.is_set()

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Any:
        return self._error

    def result(self) -> list[Any]:
        self.wait()
        return self._result

    def get_future(self) -> Any:
        with self._lock:
            if self._future is not None:
                return self._future
            self._future = torch.futures.Future()
            over = self._over.is_set()
        if over:
            self._tell()
        else:
            _completer.add(self)
        return self._future

    def _await(self, seconds: float | None) -> None:
        self._end(self._outcome(seconds))

    def _outcome(self, seconds: float | None) -> Exception | None:
        """What its operations failed with. Raises WaitTimeout where they go on."""
        try:
            for operation in self._operations:
                operation.wait(seconds)
        except WaitTimeout:
            raise
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
        if waited_for:  # without the lock: whoever is told may ask back
            self._tell()

    def _tell(self) -> None:
        if self._error is None:
            self._future.set_result(self._result)
        else:
            self._future.set_exception(self._error)


def together(begun: Iterable[tuple[Operation[Any], Callable[[], None] | None]], result: Sequence[Any]) -> Work:
    """The work of several operations, each with what is to be done once all are over."""
    operations, ends = zip(*begun)

    def finish() -> None:
        for end in ends:
            if end is not None:
                end()

    return Work(operations, list(result), finish)


class _Held:
    """Works that are not over, the oldest first: torch holds the C++ half of a work only, which knows nothing without
    this one. A program need not wait for what it sends, so those that are over are let go of when others begin."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works: dict[Work, None] = {}

    def add(self, work: Work) -> None:
        while (oldest := self._oldest()) is not None and oldest._future is None and _is_over(oldest):
            self.discard(oldest)
        with self._lock:
            self._works[work] = None

    def discard(self, work: Work) -> None:
        with self._lock:
            self._works.pop(work, None)

    def _oldest(self) -> Work | None:
        with self._lock:
            return next(iter(self._works), None)


def _is_over(work: Work) -> bool:
    try:
        return work.is_completed()
    except StateError:  # its session was closed
        return True


_held = _Held()


class _Completer:
    """Tells futures: a thread that lives while there are some, and sleeps in the wait for the oldest.

    It is no daemon: one that the interpreter's end meets inside torch ends the whole process (std::terminate). Works
    that are not over when the program ends are left after a slice. What is told may begin another work and wait for
    that one's future (PowerSGD does), so while a thread tells, the next work that comes has another thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works: collections.deque[Work] = collections.deque()
        self._waits = False  # a thread does, and tells nobody

    def add(self, work: Work) -> None:
        with self._lock:
            self._works.append(work)
            if not self._waits:
                self._waits = True
                threading.Thread(target=self._run, name="offpath-torch", daemon=False).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._works or not threading.main_thread().is_alive():
                    self._waits = False
                    return
                work = self._works[0]
            try:
                error = work._outcome(_SLICE_S)
            except WaitTimeout:
                continue
            with self._lock:
                self._works.popleft()
                self._waits = False
            work._end(error)
            with self._lock:
                if self._waits:
                    return
                self._waits = True


_completer = _Completer()
