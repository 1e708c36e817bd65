# SPDX-License-Identifier: BSD-3-Clause
"""What the oldest Python that Offpath runs on (3.9) does not have yet; later ones have it built in."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

try:
    import tomllib  # novm
except ModuleNotFoundError:
    import tomli as tomllib  # noqa: F401


class StrEnum(str, enum.Enum):
    """Members are their values, also when formatted (enum.StrEnum of 3.11)."""

    __str__ = str.__str__
    __format__ = str.__format__


def zip_equal(*series: Iterable) -> Iterator[tuple]:
    """zip(..., strict=True) of 3.10. Raises ValueError when one ends before another."""
    missing = object()
    iterators = [iter(each) for each in series]
    while True:
        row = tuple(next(each, missing) for each in iterators)
        if all(each is missing for each in row):
            return
        if any(each is missing for each in row):
            raise ValueError("one of the series ends before another")
        yield row
