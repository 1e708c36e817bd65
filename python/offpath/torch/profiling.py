# SPDX-License-Identifier: BSD-3-Clause
"""What of an epoch batches and validation take, noted while this process makes them itself (on="host"), and written at
its end to the file that OFFPATH_TORCH_PROFILE names. `offpath train-advice` reads it."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

_FILE = "OFFPATH_TORCH_PROFILE"
_epochs: list[dict[str, Any]] = []


def begin_epoch() -> None:
    """The one before ends here."""
    now = time.perf_counter()
    end_epoch(now)
    _epochs.append({"begin_s": now, "batches": 0, "batches_s": 0.0, "validation_s": 0.0, "batches_bytes": 0,
                    "weights_bytes": 0})  # fmt: skip


def end_epoch(now: float) -> None:
    if _epochs and "epoch_s" not in _epochs[-1]:
        _epochs[-1]["epoch_s"] = now - _epochs[-1].pop("begin_s")


@contextlib.contextmanager
def batch() -> Iterator[None]:
    with _noted("batches_s"):
        yield
    if _epochs:
        _epochs[-1]["batches"] += 1


@contextlib.contextmanager
def validation() -> Iterator[None]:
    with _noted("validation_s"):
        yield
    if _epochs:
        end_epoch(time.perf_counter())  # until the next one begins, nothing is the training's


def moved(part: str, count: Callable[[], int]) -> None:
    """Bytes of a batch, or of the weights. Nobody counts where nobody wants the profile."""
    if os.environ.get(_FILE) and _epochs and "epoch_s" not in _epochs[-1]:
        begin = time.perf_counter()
        _epochs[-1][part] += count()
        _epochs[-1]["begin_s"] += time.perf_counter() - begin


@contextlib.contextmanager
def _noted(part: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    if _epochs and "epoch_s" not in _epochs[-1]:
        _epochs[-1][part] += time.perf_counter() - begin


def last() -> dict[str, Any]:
    """The epoch that has ended last."""
    return dict(_epochs[-1])


def epochs() -> list[dict[str, Any]]:
    """Those that are over; the first one holds what is done once, so it counts only where there is no other."""
    end_epoch(time.perf_counter())
    return _epochs[1:] or _epochs


@atexit.register
def _write() -> None:
    path = os.environ.get(_FILE)
    if path and _epochs:
        with open(path, "w") as file:
            json.dump({"offpath_training": 1, "epochs": epochs()}, file)
