# SPDX-License-Identifier: BSD-3-Clause
"""What a rendezvous needs of a store, and how a value is waited for."""

from __future__ import annotations

import time
from typing import Any, Protocol

_NOTHING = b"\0offpath: nothing"  # no value of ours


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


def peek(store: Any, key: str) -> bytes | None:
    check = getattr(store, "check", None)  # torch's get() would wait
    if check is not None and not check([key]):
        return None
    if check is None and of_torch(store):  # PyTorch 1.13: what is not there is not changed by this
        found = bytes(store.compare_set(key, _NOTHING, _NOTHING))
        return None if found == _NOTHING else found
    try:
        value = store.get(key)
    except LookupError:
        return None
    return None if value is None else bytes(value)


def of_torch(store: Any) -> bool:
    """Whether it has torch's add() and compare_set(). (Other kinds of stores mean other things by add() alone.)"""
    return hasattr(store, "add") and hasattr(store, "compare_set")


def count(store: Any, key: str, more: int) -> int:
    """Adds so many to a number that all ranks share; 0 where there are none."""
    return int(store.add(key, more)) if of_torch(store) else 0


def await_key(store: Store, key: str, deadline: Deadline, seconds_more: float = 0.0) -> bytes | None:
    """None when it does not come in time."""
    pause = 0.001
    while True:
        value = peek(store, key)
        if value is not None or deadline.left(seconds_more) <= 0:
            return value
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
