# SPDX-License-Identifier: BSD-3-Clause
"""Batches as bytes: tensors and arrays lie there as they are, so that who unpacks them copies nothing.

u64 count, u64 length of each part; the parts, each at a multiple of 64: the pickled structure, then memory of tensors.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy
import torch

ALIGNMENT = 64


class Parts:
    """A value taken apart. `bytes` is how much room write() needs."""

    def __init__(self, value: Any):
        self._buffers: list[Any] = []
        stream = io.BytesIO()
        _Pickler(stream, self._buffers).dump(value)
        self._parts = [stream.getbuffer(), *(buffer.raw() for buffer in self._buffers)]
        self._offsets, at = [], _aligned(8 * (1 + len(self._parts)))
        for part in self._parts:
            self._offsets.append(at)
            at = _aligned(at + part.nbytes)
        self.bytes = at

    def write(self, out: memoryview) -> None:
        head = numpy.array([len(self._parts), *(part.nbytes for part in self._parts)], "<u8").tobytes()
        out[: len(head)] = head
        for at, part in zip(self._offsets, self._parts):
            out[at : at + part.nbytes] = part.cast("B") if part.nbytes else b""

    def memory(self) -> list[bytes]:
        """Of all tensors and arrays. (The structure's own bytes depend on which of its objects are the same.)"""
        return [bytes(part) for part in self._parts[1:]]


def unpack(memory: Any) -> Any:
    """What was packed; its tensors are views of `memory`, which lives as long as they do."""
    view = memoryview(memory).cast("B")
    count = int(numpy.frombuffer(view, "<u8", 1)[0])
    lengths = [int(length) for length in numpy.frombuffer(view, "<u8", count, offset=8)]
    at, parts = _aligned(8 * (1 + count)), []
    for length in lengths:
        parts.append(view[at : at + length])
        at = _aligned(at + length)
    return pickle.loads(parts[0], buffers=parts[1:])


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, buffers: list[Any]):
        super().__init__(stream, protocol=5, buffer_callback=buffers.append)

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not torch.Tensor or value.device.type != "cpu" or value.layout != torch.strided:
            return NotImplemented
        if value.requires_grad or value.is_quantized or value.dtype not in _NAMES:
            return NotImplemented
        plain = value.contiguous().view(-1)
        raw = plain.view(torch.uint8) if plain.numel() and plain.dtype != torch.uint8 else plain
        memory = pickle.PickleBuffer(raw.numpy() if plain.numel() else numpy.empty(0, numpy.uint8))
        return _rebuilt, (memory, _NAMES[value.dtype], tuple(value.shape))


_NAMES = {
    getattr(torch, name): name
    for name in ("float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool")
}


def _rebuilt(memory: Any, name: str, shape: tuple[int, ...]) -> torch.Tensor:
    dtype = getattr(torch, name)
    if len(memoryview(memory)) == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(memory, dtype=dtype).view(shape)


def _aligned(at: int) -> int:
    return -(-at // ALIGNMENT) * ALIGNMENT
