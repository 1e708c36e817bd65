# SPDX-License-Identifier: BSD-3-Clause
"""Tables that are never cut: what is wider than the terminal goes on below, beside the first columns once more."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box, table
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.text import Text

from offpath.base.console import ANY_WIDTH

STYLE: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
SHORT = 24  # characters that are never wrapped; longer text is, between words


class Table(table.Table):
    """keys: the first so many columns say what a row is about. together: so many others stay beside each other."""

    def __init__(self, *headers: Any, keys: int = 1, together: int = 1, **options: Any):
        super().__init__(*headers, **options)
        self.keys, self.together = keys, together

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Texts as they are: names in them may have brackets, which rich takes for its own."""
        super().add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells), **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        for piece in self._pieces(console, options):
            yield from table.Table.__rich_console__(piece, console, options)

    def _pieces(self, console: Console, options: ConsoleOptions) -> Iterator[table.Table]:
        wide = options.update(max_width=ANY_WIDTH, no_wrap=True)
        for column in self.columns:
            column.min_width = max(_least(console, wide, column, cell) for cell in (column.header, *column.cells))
        columns = list(range(len(self.columns)))
        keys, rest = columns[: self.keys], columns[self.keys :]
        while True:
            count = len(rest)
            while count > self.together and self._width(console, wide, keys + rest[:count]) > options.max_width:
                count -= count % self.together or self.together
            fits = self._width(console, wide, keys + rest[:count]) <= options.max_width
            yield self._of(keys + rest[:count], whole=len(keys) + len(rest) == len(columns), fits=fits)
            rest = rest[count:]
            if not rest:
                return

    def _width(self, console: Console, wide: ConsoleOptions, columns: Sequence[int]) -> int:
        return Measurement.get(console, wide, self._of(columns, whole=True)).minimum

    def _of(self, columns: Sequence[int], whole: bool, fits: bool = True) -> table.Table:
        """These columns, folded unless they fit. Not `whole`: below others, without title, and rows that are above."""
        piece = copy.copy(self)
        piece.columns, piece.rows = [], []
        lines = list(zip(*(column.cells for column in self.columns)))
        for index in columns:
            given = self.columns[index]
            piece.add_column(
                given.header, justify=given.justify, style=given.style, no_wrap=given.no_wrap and fits, overflow="fold",
                min_width=given.min_width if fits else None, max_width=given.max_width,
            )  # fmt: skip
        for row, line in zip(self.rows, lines):
            shown = [line[index] for index in columns]
            if whole or any(shown[self.keys :]) or not any(line[self.keys :]):
                piece.add_row(*shown, style=row.style, end_section=row.end_section)
        if not whole:
            piece.title = None
        return piece


def _least(console: Console, wide: ConsoleOptions, column: table.Column, cell: Any) -> int:
    least, most = Measurement.get(console, wide, cell)
    if column.max_width is not None:
        least, most = min(least, column.max_width), min(most, column.max_width)
    return most if column.no_wrap or most <= SHORT else max(least, SHORT)
