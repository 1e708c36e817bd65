# SPDX-License-Identifier: BSD-3-Clause
"""What may be a buffer of the Python interface, and how it says no. Needs no service."""

import array
import gc
import weakref

import numpy as np
import pytest
from offpath import ArgumentError
from offpath.api import collectives, results
from offpath.api.buffers import Buffer, overlap
from offpath.api.constants import Element


@pytest.mark.parametrize(
    "dtype, element",
    [
        ("i1", Element.I8), ("i2", Element.I16), ("i4", Element.I32), ("i8", Element.I64), ("u1", Element.U8),
        ("u2", Element.U16), ("u4", Element.U32), ("u8", Element.U64), ("f4", Element.F32), ("f8", Element.F64),
        ("g", Element.FLONG), ("c8", Element.C32), ("c16", Element.C64), ("G", Element.CLONG), ("?", Element.U8),
        ("<i4", Element.I32),
    ],
)  # fmt: skip
def test_elements_of_arrays(dtype, element):
    numbers = np.zeros((3, 5), dtype)
    buffer = Buffer(numbers)
    assert (buffer.element(), buffer.items, buffer.nbytes) == (element, 15, numbers.nbytes)
    assert buffer.address == numbers.ctypes.data


def test_other_buffers():
    assert Buffer(b"four").nbytes == 4 and Buffer(bytearray(3), writable=True).items == 3
    assert Buffer(array.array("d", [1, 2])).element() == Element.F64
    assert Buffer(memoryview(bytearray(8)).cast("q")).element() == Element.I64
    assert Buffer(np.float64(3)).items == 1 and Buffer(np.zeros((0, 4))).nbytes == 0


def test_a_tensor_of_others_is_not_copied():
    class Tensor:
        inner = np.arange(4.0)

        def __dlpack__(self, **options):
            return self.inner.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.inner.__dlpack_device__()

    assert Buffer(Tensor(), writable=True).address == Tensor.inner.ctypes.data


@pytest.mark.parametrize(
    "owner, writable, words",
    [
        (np.zeros(6)[::2], False, "not C-contiguous"),
        (np.zeros((3, 3), order="F"), False, "numpy.ascontiguousarray"),
        (np.zeros((3, 3)).T[1:], True, "not C-contiguous"),
        (b"bytes", True, "read-only"),
        (np.broadcast_to(np.zeros(1), 3), True, "read-only"),
        ("text", False, "gives no access to its memory"),
        ([1, 2], False, "list"),
        (None, False, "NoneType"),
        (np.zeros(2, "M8[s]"), False, "view"),
    ],
)
def test_what_is_no_buffer(owner, writable, words):
    with pytest.raises(ArgumentError, match=words):
        Buffer(owner, writable=writable)
    with pytest.raises(ValueError):  # which it is, too
        Buffer(owner, writable=writable)


@pytest.mark.parametrize("dtype, words", [("f2", "'e'"), (">f8", "byte order"), (">i2", "byte order"), ("S3", "'3s'")])
def test_what_cannot_be_reduced(dtype, words):
    with pytest.raises(ArgumentError, match=words):
        Buffer(np.zeros(3, dtype)).element()


@pytest.mark.parametrize(
    "op, dtype, words",
    [
        ("add", "f8", "no operator 'add'. Use one of sum, prod"), ("bxor", "f8", "floating"), ("max", "c16", "complex"),
        ("sum", "?", "truth"), ("minloc", "f8", "no operator"),
    ],
)  # fmt: skip
def test_operators_on_elements(op, dtype, words):
    with pytest.raises(ArgumentError, match=words):
        collectives.reduction(op, Buffer(np.zeros(3, dtype)))


def test_memory_stays_as_long_as_it_is_held():
    numbers = np.zeros(1000)
    gone, buffer = weakref.ref(numbers), Buffer(numbers)
    del numbers
    gc.collect()
    assert gone() is not None
    del buffer
    assert gone() is None
    text = bytearray(8)
    held = Buffer(text)
    with pytest.raises(BufferError):
        text.extend(b"more")
    del held
    text.extend(b"more")


def test_parts_and_displacements():
    buffer = Buffer(np.arange(10, dtype="i4"))
    blocks = collectives.parts(buffer, [2, 0, 3], [4, 0, 7], 3)
    assert [(block.peer, block.bytes) for block in blocks] == [(0, 8), (1, 0), (2, 12)]
    assert blocks[0].address == buffer.address + 16 and blocks[1].address is None
    for counts, displs, words in (
        ([1], None, "1 counts for a team of 3"), ([1, 2, 3], [0, 1], "counts"), ([4, 4, 4], None, "lie outside"),
        ([-1, 1, 1], None, "lie outside"), ([1, 1, 1], [0, 0, 10], "lie outside"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=words):
            collectives.parts(buffer, counts, displs, 3)


def test_overlap():
    numbers = np.zeros(10)
    left, right = Buffer(numbers[:6]), Buffer(numbers[5:])
    assert overlap(left, right) and not overlap(Buffer(numbers[:5]), right)
    with pytest.raises(ArgumentError, match="overlap"):
        collectives.apart(left, right, allowed=True)
    collectives.apart(left, Buffer(numbers), allowed=True)


def test_results_that_nobody_gave():
    send = Buffer(np.zeros((4, 3), "f4"))
    assert results.of_all(send, 5).shape == (5, 4, 3) and results.share(send, 2).shape == (2, 3)
    assert results.like(Buffer(array.array("i", [1, 2]))).dtype == np.int32
    with pytest.raises(ArgumentError, match="no 3 equal parts"):
        results.share(send, 3)
