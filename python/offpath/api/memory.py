# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in memory that the service maps, too, and uses in place."""

from __future__ import annotations

import math
import operator
import os
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Union

from offpath.api.constants import Status
from offpath.api.failures import ArgumentError, failure
from offpath.api.library import library, status_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy
    import numpy.typing

    from offpath.api.attachment import Attachment

    Shape = Union[int, Sequence[int]]


class _Lent:
    """Memory that lives as long as arrays of it do, whatever becomes of the session (offpath_memory_lend)."""

    def __init__(self, session: Attachment, nbytes: int):
        self._address = 0
        self._process = os.getpid()
        out = c_void_p()
        with session.in_use:
            status = library().offpath_memory_lend(session.handle, max(nbytes, 1), 64, byref(out))
        if status != Status.OK:
            raise failure(status, _why_not(status, nbytes))
        self._address = out.value or 0
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (self._address, False), "strides": None,
        }  # fmt: skip

    def __del__(self, take_back: Any = None, own_process: Any = os.getpid) -> None:
        # A forked child has copies, which go with it.
        if self._address and self._process == own_process():
            (take_back or library().offpath_memory_take_back)(self._address)


def lend(session: Attachment, shape: Shape, dtype: numpy.typing.DTypeLike) -> numpy.typing.NDArray[Any]:
    """A zeroed array. Raises ArgumentError for elements that are Python objects, NoMemoryError, StateError."""
    import numpy

    kind = numpy.dtype(dtype)
    if kind.hasobject:
        raise ArgumentError(
            f"dtype {kind} holds Python objects (which have no meaning in the service). Pick plain numbers."
        )
    shape = tuple(map(operator.index, shape)) if hasattr(shape, "__iter__") else (operator.index(shape),)
    if any(length < 0 for length in shape):
        raise ArgumentError(f"shape {shape} has a negative length. Give lengths of 0 and more.")
    flat: Any = numpy.asarray(_Lent(session, math.prod(shape) * kind.itemsize))
    array: numpy.typing.NDArray[Any] = flat.view(kind).reshape(shape)
    return array


def _why_not(status: int, nbytes: int) -> str:
    if status == Status.ERR_NO_MEMORY:
        return (
            f"no {nbytes} bytes of mapped memory are left (a process has at most 4096 such arrays, as much memory as "
            "the machine, and none after it has forked three times). Make one large array and slice it, or use "
            "numpy.empty."
        )
    return (
        f"mapped memory: {status_text(status)} (it needs a living service, and OFFPATH_MAPPED must not be off). Use "
        "numpy.empty."
    )
