# SPDX-License-Identifier: BSD-3-Clause
"""Numbers for the versions of inputs that do not change. To the library one says what lies at an address. Where an
array has gone another one may come to lie, which is another thing to the program, whatever version it gives it."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offpath.api.buffers import Buffer, BufferLike

_KNOWN = 1024


class Versions:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._known: dict[tuple[int, int], tuple[Any, int, int]] = {}  # by place: whose, version, number

    def number(self, buffer: Buffer, version: int, array: BufferLike | None = None) -> int:
        """`array`: what the program has given, else the buffer's owner. 0 of version 0: it may change at any time."""
        if version == 0:
            return 0
        place, mark = (buffer.address, buffer.nbytes), _mark(buffer.owner if array is None else array)
        known = self._known.get(place)
        if known is None or known[:2] != (mark, version):
            if len(self._known) >= _KNOWN:
                self._known = {}  # they are copied once more
            known = self._known[place] = mark, version, next(self._numbers)
        return known[2]


def _mark(owner: Any) -> Any:
    """Equal for one owner of memory as long as it lives, whichever view of it is asked, and for no two. Of what nobody
    can look after: of bytes what they are, of a bytearray nothing (the program knows), of others new each time."""
    while getattr(owner, "base", None) is not None:  # NumPy's views
        owner = owner.base
    while isinstance(owner, memoryview):
        owner = owner.obj
    try:
        return _Alive(owner)
    except TypeError:
        if isinstance(owner, bytearray):
            return None
        return hash(owner) if isinstance(owner, bytes) else object()


class _Alive:
    def __init__(self, owner: Any):
        self._owner = weakref.ref(owner)

    def __eq__(self, other: object) -> bool:
        owner = self._owner()
        return isinstance(other, _Alive) and owner is not None and owner is other._owner()

    __hash__ = None  # type: ignore[assignment]
