# SPDX-License-Identifier: BSD-3-Clause
"""Names for parts of a program, in the traces that Offpath records of it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def region(name: str) -> Iterator[None]:
    """What runs inside is a region of that name, in traces and profiles of MPI programs (include/offpath/region.h):

        with offpath.region("assemble"):
            ...

    It may also decorate a function. Nothing happens where nothing is recorded.
    """
    mark = _recorder()
    if mark is None:
        yield
        return
    text = name.encode()
    mark(text, 1)
    try:
        yield
    finally:
        mark(text, 0)


@functools.cache
def _recorder() -> Callable[[bytes, int], None] | None:
    """What the preloaded library offers to the whole program."""
    mark = getattr(ctypes.PyDLL(None), "offpath_region_mark", None)  # a short call: the interpreter's lock stays
    if mark is None:
        return None
    mark.argtypes, mark.restype = [ctypes.c_char_p, ctypes.c_int], None
    found: Callable[[bytes, int], None] = mark
    return found
