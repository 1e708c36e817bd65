# SPDX-License-Identifier: BSD-3-Clause
"""Tensors as memory that the service can move and reduce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy
import torch

from offpath.api.failures import ArgumentError

Given = TypeVar("Given")

# Moved as integers of their size: NumPy does not know the type, or the library does not add it up.
_MOVED_AS = {torch.bfloat16: torch.int16, torch.bool: torch.uint8}
# Reduced as another type, and converted back.
_REDUCED_AS = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
_OPERATORS = {
    "SUM": "sum", "AVG": "sum", "PRODUCT": "prod", "MIN": "min", "MAX": "max", "BAND": "band", "BOR": "bor",
    "BXOR": "bxor",
}  # fmt: skip
_OF_TRUTH = {"sum": "bor", "prod": "band", "min": "band", "max": "bor"}


def array_of(tensor: torch.Tensor) -> numpy.ndarray[Any, Any]:
    """The tensor's own memory."""
    if tensor.device.type != "cpu":
        raise ArgumentError(
            f"a tensor is on {tensor.device} (the backend offpath moves the host's memory). Use tensors on the CPU, or "
            "another backend for this group."
        )
    if tensor.layout != torch.strided or not tensor.is_contiguous():
        raise ArgumentError("a tensor is not contiguous (it is moved as one stretch). Pass tensor.contiguous().")
    if tensor.is_conj() or tensor.is_neg():
        raise ArgumentError("a tensor is a view that changes signs (its memory has others). Pass a clone().")
    plain = tensor.detach()
    if plain.dtype in _MOVED_AS:
        plain = plain.view(_MOVED_AS[plain.dtype])
    return numpy.asarray(_Viewed(plain))


def flat(tensor: torch.Tensor) -> numpy.ndarray[Any, Any]:
    return array_of(tensor).reshape(-1)


class _Viewed:
    """A tensor's memory for NumPy. torch's own numpy() takes the right to give memory back from the tensor for good,
    and FSDP gives it back whenever a layer is over."""

    def __init__(self, tensor: torch.Tensor):
        self._tensor = tensor
        kind = numpy.dtype(str(tensor.dtype).partition(".")[2])  # torch.float32, float32
        self.__array_interface__ = {
            "version": 3, "typestr": kind.str, "shape": tuple(tensor.shape), "data": (tensor.data_ptr(), False),
        }  # fmt: skip


def one(each: Sequence[Given]) -> Given:
    """torch gives a list with a tensor, or a list of them, for each device of a rank, which has one here."""
    if len(each) != 1:
        raise ArgumentError(f"{len(each)} tensors, or lists, for a rank with one device. Call it once for each.")
    return each[0]


def alike(*tensors: torch.Tensor) -> None:
    """Bytes are moved as they are: those of one type mean nothing in a tensor of another."""
    types = sorted({str(tensor.dtype) for tensor in tensors})
    if len(types) > 1:
        raise ArgumentError(f"tensors of {' and '.join(types)} in one call (all have one type). Convert them before.")


class Reduction:
    """A reduction's operator and operand as the library knows them, and the way back for the result."""

    def __init__(self, operand: torch.Tensor, reduce_op: Any, members: int):
        name = getattr(reduce_op, "op", reduce_op).name
        if name not in _OPERATORS:
            raise ArgumentError(f"the backend offpath has no {name}. Use {', '.join(_OPERATORS)}.")
        self.operator = _OPERATORS[name]
        if operand.dtype == torch.bool:
            self.operator = _OF_TRUTH.get(self.operator, self.operator)
        # An average of truths is a truth: where one of them is.
        self._divisor = members if name == "AVG" and operand.dtype != torch.bool else 1
        self._type = _REDUCED_AS.get(operand.dtype)
        array_of(operand)  # says what is wrong with it
        self.send = array_of(operand if self._type is None else operand.detach().to(self._type))

    def receive(self, result: torch.Tensor) -> numpy.ndarray[Any, Any]:
        """Where the library is to write what becomes `result`: there, or beside it."""
        array = array_of(result)
        return array if self._type is None else numpy.empty(array.shape, numpy.float32)

    def finish(self, result: torch.Tensor, received: numpy.ndarray[Any, Any]) -> None:
        if received.dtype.kind in "iu" and self._divisor != 1:
            # torch would divide them as float32, which has 24 bits.
            wide = received.astype(numpy.uint64 if received.dtype.kind == "u" else numpy.int64)
            received[...] = (wide - numpy.fmod(wide, self._divisor)) // self._divisor
        elif self._type is not None or self._divisor != 1:
            values = result.detach() if self._type is None else torch.from_numpy(received)
            result.detach().copy_(values / self._divisor)
