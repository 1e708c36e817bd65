# SPDX-License-Identifier: BSD-3-Clause
"""What program and interpreter say to each other: a call, and how it ended."""

from __future__ import annotations

import pickle
import sys
import traceback
from dataclasses import dataclass
from typing import Any

# Of what is said here, in worker.py and in frontends/python/python.cpp, which has the same number. A change of it
# counts on.
PROTOCOL = 2
REPORT_BYTES = 16384
_LENGTH_BYTES = 8


@dataclass(frozen=True)
class Place:
    """An array as the interpreter finds it. at: offset in the file of the program's shared memory; None: it was
    sent. format: of one plain number, by the buffer protocol's letter; of all else, NumPy's type, pickled."""

    at: int | None
    format: str | bytes
    shape: tuple[int, ...]
    writable: bool


@dataclass(frozen=True)
class Call:
    """file: of the program's shared memory. function: pickled, so that it is unpickled once. version: of Python, where
    the function is pickled as code; else empty."""

    file: str
    path: tuple[str, ...]
    function: bytes
    arguments: bytes
    places: tuple[Place, ...]
    version: str = ""


@dataclass(frozen=True)
class Ending:
    """value or error is None; text: the traceback."""

    value: Any = None
    error: BaseException | None = None
    text: str = ""


def version() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def pack(ending: Ending) -> tuple[bytes, Ending]:
    """At most REPORT_BYTES, and what they say. What cannot be pickled, or is too long, is said in words."""
    for one in (ending, _in_words(ending)):
        try:
            words = pickle.dumps(one, protocol=4)
            pickle.loads(words)  # some exceptions can be pickled only
        except Exception:
            continue
        if len(words) <= REPORT_BYTES - _LENGTH_BYTES:
            return len(words).to_bytes(_LENGTH_BYTES, "little") + words, one
    raise AssertionError("words can always be pickled")


def unpack(report: bytes) -> Ending | None:
    """None: nobody has reported."""
    length = int.from_bytes(report[:_LENGTH_BYTES], "little")
    if not 0 < length <= REPORT_BYTES - _LENGTH_BYTES:
        return None
    ending = pickle.loads(report[_LENGTH_BYTES : _LENGTH_BYTES + length])
    return ending if isinstance(ending, Ending) else None


def failed(error: BaseException) -> Ending:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Ending(error=error.with_traceback(None), text=_last(text, 8000))


def in_words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # the program's own, when it is asked what it says
        return type(error).__name__


def _last(text: str, most_bytes: int) -> str:
    return text.encode(errors="replace")[-most_bytes:].decode(errors="ignore")


def _in_words(ending: Ending) -> Ending:
    if ending.error is not None:
        said = in_words(ending.error)[:2000].encode(errors="replace")[:2000].decode(errors="ignore")
        return Ending(error=RuntimeError(said), text=ending.text)
    return Ending(
        error=ValueError(
            f"a task returned {type(ending.value).__name__} (it cannot be pickled, or is longer than "
            f"{REPORT_BYTES - 1000} bytes). Write results into outputs."
        )
    )
