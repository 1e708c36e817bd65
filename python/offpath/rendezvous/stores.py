# SPDX-License-Identifier: BSD-3-Clause
"""What a rendezvous needs of a store, and how a value is waited for."""

from __future__ import annotations

import time
from typing import Any, Protocol


class Store(Protocol):
    """Two functions that all ranks share; torch's stores are such. get: bytes once they are there; before, None, an
    exception of kind LookupError, or a wait with a bound of its own. One with a true attribute `private` is read by
    nobody but the ranks' user; any other by everybody."""

    def set(self, key: str, value: bytes) -> Any: ...

    def get(self, key: str) -> Any: ...


class Deadline:
    def __init__(self, seconds: float):
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def over(self) -> bool:
        return time.monotonic() >= self._end

    def left(self, seconds_more: float = 0.0) -> float:
        return max(0.0, self._end + seconds_more - time.monotonic())


def peek(store: Store, key: str) -> bytes | None:
    check = getattr(store, "check", None)  # torch's get() would wait
    if check is not None and not check([key]):
        return None
    try:
        value = store.get(key)
    except LookupError:
        return None
    return None if value is None else bytes(value)


def await_key(store: Store, key: str, deadline: Deadline, seconds_more: float = 0.0) -> bytes | None:
    """None when it does not come in time."""
    pause = 0.001
    while True:
        value = peek(store, key)
        if value is not None or deadline.left(seconds_more) <= 0:
            return value
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
