# SPDX-License-Identifier: BSD-3-Clause
"""Any object's memory by the buffer protocol: its address, length and element type, and a hold on it.

As long as a Buffer lives, its owner can neither be freed nor resized.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_ssize_t, c_void_p, py_object
from typing import TYPE_CHECKING, Any

from offpath.api.constants import Element
from offpath.api.failures import ArgumentError

if TYPE_CHECKING:
    from typing import Union

    from typing_extensions import Buffer as Exporter

    BufferLike = Union[Exporter, "SupportsDlpack"]

    class SupportsDlpack:
        def __dlpack__(self) -> Any: ...


class _PyBuffer(ctypes.Structure):
    """Py_buffer: part of CPython's stable ABI, and the same in all versions since 3.0."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_WRITABLE, _FORMAT, _C_CONTIGUOUS, _STRIDES = 0x1, 0x4, 0x38, 0x18

_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [py_object, POINTER(_PyBuffer), c_int]
_get.restype = c_int
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [POINTER(_PyBuffer)]
_release.restype = None

_SIGNED = {1: Element.I8, 2: Element.I16, 4: Element.I32, 8: Element.I64}
_UNSIGNED = {1: Element.U8, 2: Element.U16, 4: Element.U32, 8: Element.U64}
_ELEMENTS: dict[str, Element | dict[int, Element]] = {
    **dict.fromkeys("bhilqn", _SIGNED),
    **dict.fromkeys("BHILQN?", _UNSIGNED),
    "f": Element.F32, "d": Element.F64, "g": Element.FLONG, "Zf": Element.C32, "Zd": Element.C64, "Zg": Element.CLONG,
}  # fmt: skip
_FOREIGN_ORDER = ">!" if sys.byteorder == "little" else "<"


class Buffer:
    """A hold on the memory of `owner`. Raises ArgumentError where that is not one C-contiguous stretch."""

    __slots__ = ("_raw", "address", "format", "held", "itemsize", "nbytes", "owner")

    def __init__(self, owner: BufferLike, *, writable: bool = False, what: str = "the buffer"):
        self.held = False
        self.owner: Any = owner
        self._raw = _PyBuffer()
        try:
            _get(owner, byref(self._raw), _C_CONTIGUOUS | _FORMAT | (_WRITABLE if writable else 0))
        except TypeError:
            self.owner = _by_dlpack(owner, what)
            _get(self.owner, byref(self._raw), _C_CONTIGUOUS | _FORMAT | (_WRITABLE if writable else 0))
        except (BufferError, ValueError) as error:
            raise ArgumentError(_why_not(owner, writable, what, error)) from None
        self.held = True
        self.address: int = self._raw.buf or 0
        self.nbytes: int = self._raw.len
        self.itemsize: int = self._raw.itemsize
        self.format: str = self._raw.format.decode() if self._raw.format else "B"

    def __del__(self, release: Any = _release) -> None:
        if self.held:
            self.held = False
            release(byref(self._raw))

    @property
    def shape(self) -> tuple[int, ...]:
        return memoryview(self.owner).shape or ()

    @property
    def items(self) -> int:
        return self.nbytes // self.itemsize if self.itemsize else 0

    def element(self, what: str = "the buffer") -> Element:
        """For reductions. Raises ArgumentError for what the library cannot add up."""
        letters = self.format.lstrip("@=<>!")
        kind = _ELEMENTS.get(letters)
        if kind is not None and self.format[0] in _FOREIGN_ORDER and self.itemsize > 1:
            raise ArgumentError(
                f"{what} has elements in the other byte order ({self.format!r}; services compute in the machine's). "
                "Convert it: array.astype(array.dtype.newbyteorder('='))."
            )
        element = kind.get(self.itemsize) if isinstance(kind, dict) else kind
        if element is None:
            raise ArgumentError(
                f"{what} has elements of format {self.format!r} ({self.itemsize} bytes), which cannot be reduced. "
                "Use integers of 8 to 64 bits, float32, float64, longdouble, or complex of these."
            )
        return element


def overlap(left: Buffer, right: Buffer) -> bool:
    return left.address < right.address + right.nbytes and right.address < left.address + left.nbytes


def _by_dlpack(owner: Any, what: str) -> Any:
    """A NumPy array of the same memory, for tensors of others."""
    if not hasattr(owner, "__dlpack__"):
        raise ArgumentError(
            f"{what} is {type(owner).__name__}, which gives no access to its memory (buffer protocol). Pass a NumPy "
            "array, bytearray, array or memoryview."
        )
    import numpy

    try:
        array = numpy.from_dlpack(owner)
    except Exception as error:
        raise ArgumentError(f"{what} cannot be reached by NumPy ({error}). Pass one in the host's memory.") from None
    if not array.flags.c_contiguous:
        raise ArgumentError(_not_contiguous(what))
    return array


def _why_not(owner: Any, writable: bool, what: str, error: Exception) -> str:
    strided = _PyBuffer()
    try:
        _get(owner, byref(strided), _STRIDES | _FORMAT)
    except (BufferError, ValueError):
        return f"{what} cannot be used as memory ({error}). View it as a plain type, for example array.view('i8')."
    read_only = bool(strided.readonly)
    _release(byref(strided))
    if writable and read_only:
        return f"{what} is read-only (the result is written there). Pass a writable array."
    return _not_contiguous(what)


def _not_contiguous(what: str) -> str:
    return f"{what} is not C-contiguous (the service moves whole stretches). Pass numpy.ascontiguousarray(array)."
