# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of include/offpath/offpath.h, under their names there; enumerations from the tables that C reads, too."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, TypeVar

from offpath.base import words

TOKEN_BYTES = 32
TEAM_ID_BYTES = 16
ADDRESS_MAX_BYTES = 1024
ATTACH_NODE_ONLY = 1
WINDOW_DYNAMIC = 1
REMOTE_RANGES_MAX = 128
REMOTE_INLINE_BYTES = 256
TASK_ARGUMENT_MAX_BYTES = 65536
TASK_RANGES_MAX = 1024
IN_PLACE = (1 << 64) - 1
FOREVER_NS = (1 << 64) - 1


_T = TypeVar("_T")


class _Table(enum.EnumMeta):
    """Its members are the rows of a table, which no type checker reads."""

    if TYPE_CHECKING:

        def __getattr__(cls: type[_T], name: str) -> _T: ...


def _add(members: dict[str, Any], table: str) -> None:
    for name, number in words.numbers(table).items():
        members[name] = number


class Status(enum.IntEnum, metaclass=_Table):
    _add(vars(), "statuses")


class Loss(enum.IntEnum, metaclass=_Table):
    _add(vars(), "losses")


class Kind(enum.IntEnum, metaclass=_Table):
    _add(vars(), "collective_kinds")


class Algorithm(enum.IntEnum, metaclass=_Table):
    _add(vars(), "algorithms")


class Operator(enum.IntEnum, metaclass=_Table):
    _add(vars(), "operators")


class Element(enum.IntEnum, metaclass=_Table):
    _add(vars(), "elements")


class Remote(enum.IntEnum, metaclass=_Table):
    _add(vars(), "remote_kinds")


class Access(enum.IntEnum, metaclass=_Table):
    _add(vars(), "task_accesses")
