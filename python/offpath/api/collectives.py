# SPDX-License-Identifier: BSD-3-Clause
"""What each collective wants of its buffers, as descriptions for the library. Counts are in elements here, in bytes
there."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from ctypes import addressof, sizeof
from typing import TYPE_CHECKING, Any

from offpath.api.buffers import Buffer, overlap
from offpath.api.constants import Algorithm, Element, Kind, Operator
from offpath.api.failures import ArgumentError
from offpath.api.structs import Block, Collective

if TYPE_CHECKING:
    from offpath.api.buffers import BufferLike

_STRUCT_BYTES = sizeof(Collective)
_OPERATORS = {
    operator.name.lower(): int(operator) for operator in Operator if Operator.SUM <= operator <= Operator.LXOR
}
_ALGORITHMS = {algorithm.name.lower(): int(algorithm) for algorithm in Algorithm}
_BOOL_OPERATORS = frozenset(_OPERATORS[name] for name in ("min", "max", "band", "bor", "bxor", "land", "lor", "lxor"))

Described = tuple[Collective, list[Any]]  # and what has to live as long as the operation


def describe(
    kind: Kind, send: Sequence[Block], recv: Sequence[Block], keep: list[Any], *, root: int = 0, operator: int = 0,
    element: int = 0, algorithm: str = "default", counts_bytes: Any = None,
) -> Described:  # fmt: skip
    send_array, recv_array = (Block * len(send))(*send), (Block * len(recv))(*recv)
    keep += [send_array, recv_array]
    return Collective(
        _STRUCT_BYTES, int(kind), _named("algorithm", algorithm, _ALGORITHMS), root, operator, element,
        addressof(send_array), addressof(recv_array), len(send), len(recv),
        None if counts_bytes is None else addressof(counts_bytes), None, 0,
    ), keep  # fmt: skip


def _named(what: str, name: str, known: Mapping[str, int]) -> int:
    if name not in known:
        raise ArgumentError(f"there is no {what} {name!r}. Use one of {', '.join(known)}.")
    return known[name]


def reduction(op: str, send: Buffer) -> tuple[int, int]:
    """Operator and element. Raises ArgumentError where one is not defined on the other."""
    operator, element = _named("operator", op, _OPERATORS), send.element("the send buffer")
    if send.format.endswith("?") and operator not in _BOOL_OPERATORS:
        raise ArgumentError(f"{op} is not defined on truth values. Convert them: array.astype('u8').")
    floating = Element.F32 <= element <= Element.CLONG
    if floating and _OPERATORS["band"] <= operator <= _OPERATORS["bxor"]:
        raise ArgumentError(f"{op} is not defined on floating-point elements. Use integers.")
    if Element.C32 <= element <= Element.CLONG and op not in ("sum", "prod"):
        raise ArgumentError(f"{op} is not defined on complex elements. Use sum or prod.")
    return operator, int(element)


def block(buffer: Buffer, peer: int = 0) -> Block:
    return Block(peer, 0, buffer.address or None, buffer.nbytes, 0)


def part(buffer: Buffer, first: int, items: int, peer: int = 0) -> Block:
    """`items` elements from element `first` on. Raises ArgumentError where the buffer has not so many."""
    size = buffer.itemsize
    if first < 0 or items < 0 or (first + items) * size > buffer.nbytes:
        raise ArgumentError(
            f"elements {first} to {first + items} lie outside a buffer of {buffer.items}. Check counts and "
            "displacements."
        )
    return Block(peer, 0, (buffer.address + first * size) if items else None, items * size, 0)


def same_size(send: Buffer, recv: Buffer, times: int = 1) -> None:
    if send.nbytes * times == recv.nbytes:
        return
    wanted = f"{times} times the send buffer's {send.nbytes}" if times != 1 else f"the send buffer's {send.nbytes}"
    raise ArgumentError(f"the receive buffer has {recv.nbytes} bytes (it takes {wanted}). Pass one of that size.")


def apart(send: Buffer, recv: Buffer, allowed: bool = False) -> None:
    """Raises ArgumentError where they overlap, unless they begin together and that is `allowed`."""
    if send.nbytes and recv.nbytes and overlap(send, recv) and not (allowed and send.address == recv.address):
        raise ArgumentError("send and receive buffer overlap (one would change while it is read). Use two arrays.")


def displacements(counts: Sequence[int], given: Sequence[int] | None, size: int) -> list[int]:
    """Where each member's part begins: as given, else one behind the other."""
    if len(counts) != size or (given is not None and len(given) != size):
        raise ArgumentError(f"{len(counts)} counts for a team of {size} (there is one for each member). Pass as many.")
    if given is not None:
        return [int(at) for at in given]
    begins, at = [], 0
    for count in counts:
        begins.append(at)
        at += int(count)
    return begins


def parts(buffer: Buffer, counts: Sequence[int], given: Sequence[int] | None, size: int) -> list[Block]:
    begins = displacements(counts, given, size)
    return [part(buffer, begins[peer], int(counts[peer]), peer) for peer in range(size)]


def equal_parts(buffer: Buffer, size: int) -> list[Block]:
    """In bytes: the members' own buffers may be of other elements than the one that has all of them."""
    share = buffer.nbytes // size
    return [Block(peer, 0, (buffer.address + peer * share) if share else None, share, 0) for peer in range(size)]


def same_elements(send: Buffer, recv: Buffer) -> None:
    """What is computed of the one is written into the other."""
    if recv.element("the receive buffer") != send.element("the send buffer"):
        raise ArgumentError(
            f"the buffers have elements {send.format!r} and {recv.format!r} (results are what is sent). Pass equal "
            "ones."
        )


def exchanged(blocks: Mapping[int, BufferLike], size: int, writable: bool, keep: list[Any]) -> list[Block]:
    """One block for each member named."""
    out = []
    for peer, array in blocks.items():
        if not 0 <= peer < size:
            raise ArgumentError(f"there is no member {peer} in a team of {size}. Name members from 0 on.")
        buffer = Buffer(array, writable=writable, what=f"the buffer for member {peer}")
        keep.append(buffer)
        out.append(block(buffer, peer))
    return out


def longs(values: Iterable[int], count: int) -> Any:
    return (ctypes.c_uint64 * count)(*values)
