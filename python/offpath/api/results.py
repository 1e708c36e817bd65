# SPDX-License-Identifier: BSD-3-Clause
"""Arrays for results that the caller did not give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from offpath.api.failures import ArgumentError

if TYPE_CHECKING:
    from offpath.api.buffers import Buffer


def _as_array(send: Buffer) -> Any:
    import numpy

    return numpy.asarray(memoryview(send.owner)) if not isinstance(send.owner, numpy.ndarray) else send.owner


def like(send: Buffer) -> Any:
    import numpy

    return numpy.empty_like(_as_array(send), subok=False)


def of_all(send: Buffer, size: int) -> Any:
    """One array like `send` for each member."""
    import numpy

    array = _as_array(send)
    return numpy.empty((size, *array.shape), array.dtype)


def of_items(send: Buffer, items: int) -> Any:
    """So many elements, one behind the other."""
    import numpy

    return numpy.empty(items, _as_array(send).dtype)


def share(send: Buffer, size: int) -> Any:
    """One of `size` equal parts along the first axis."""
    import numpy

    array = _as_array(send)
    if array.ndim == 0 or array.shape[0] % size:
        raise ArgumentError(
            f"an array of shape {array.shape} has no {size} equal parts along its first axis. Give counts and a "
            "receive buffer."
        )
    return numpy.empty((array.shape[0] // size, *array.shape[1:]), array.dtype)
