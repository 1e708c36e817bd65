# SPDX-License-Identifier: BSD-3-Clause
"""Tables as data: a heading and what a row has below it. The same table is shown on a terminal and on a page."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

from offpath.base import console, tables
from offpath.base.sizes import ms_text, size_text
from offpath.launch.mpis import TITLES
from offpath.pages import report

ABSENT = "-"
# What a template may say behind a colon besides Python's own, as "{bytes:size}, {t_pure_ns:ms}".
FORMATS: Mapping[str, Callable] = {
    "size": size_text,
    "ms": ms_text,
    "us": lambda ns: f"{ns / 1e3:.{1 if ns < 1e6 else 0}f}",
    "giga": lambda value: f"{value / 1e9:.2f}",
    "mpi": TITLES.__getitem__,
}
Cell = Union[str, Callable[[dict], str]]  # a template of a row's fields; or a function, where that is not enough


class _Template(string.Formatter):
    def format_field(self, value, format_spec: str) -> str:
        if value is None:
            raise KeyError("nothing was measured")
        named = FORMATS.get(format_spec)
        return named(value) if named else super().format_field(value, format_spec)


def cell(text: Cell, row: Mapping) -> str:
    """What the row has not is absent."""
    try:
        return _Template().vformat(text, (), row) if isinstance(text, str) else text(dict(row))
    except KeyError:
        return ABSENT


class Shown:
    """A table, a chart, a line: on a terminal, and as cards of a page."""

    def show(self, result: dict) -> None:
        pass

    def cards(self, result: dict) -> Iterator[str]:
        yield from ()


@dataclass(frozen=True)
class Table(Shown):
    """`columns`: a title, and the cell of a row. Its title may be of rows, too: a table for each title."""

    title: Cell
    columns: Sequence[tuple[str, Cell]]
    keys: int = 1  # the first so many columns say what a row is about
    of: str = "rows"  # which part of the result has its rows
    where: Callable[[dict], bool] = lambda row: True
    strong: Callable[[dict], bool] = lambda row: False  # what the others are compared with
    note: str = ""  # how to read it
    when: Callable[[dict], bool] = lambda result: True
    on_page_only: bool = False  # a terminal has another one that says it shorter

    def show(self, result: dict) -> None:
        if self.on_page_only:
            return
        for title, rows in self.parts(result):
            shown = tables.Table(keys=self.keys, **tables.STYLE)
            lines = [self.cells(row) for row in rows]
            columns = self._filled(rows)
            for index, name in columns:
                numbers = index >= self.keys and all(line[index][:1] in "+-0123456789" for line in lines)
                shown.add_column(name, no_wrap=True, justify="right" if numbers else "left")
            for row, line in zip(rows, lines):
                strong = self.strong(row)
                words = [line[index] for index, _ in columns]
                shown.add_row(*words, style="bold" if strong else "", end_section=strong)
            console.out.print(f"[italic]{title}[/]", shown, sep="\n")
            if self.note:
                console.out.print(self.note, soft_wrap=True)

    def cards(self, result: dict) -> Iterator[str]:
        for title, rows in self.parts(result):
            header = [name for name, _ in self.columns]
            yield report.card(title, report.table(header, [self.cells(row) for row in rows]), note=self.note)

    def parts(self, result: dict) -> Iterator[tuple[str, list[dict]]]:
        """The title and the rows of each table."""
        found: dict[str, list[dict]] = {}
        for row in result.get(self.of, ()) if self.when(result) else ():
            if self.where(row):
                found.setdefault(cell(self.title, row), []).append(row)
        yield from found.items()

    def cells(self, row: dict) -> list[str]:
        return [cell(text, row) for _, text in self.columns]

    def _filled(self, rows: list[dict]) -> list[tuple[int, str]]:
        """A column in which nothing is says nothing."""
        return [
            (index, name)
            for index, (name, text) in enumerate(self.columns)
            if any(cell(text, row) not in (ABSENT, "") for row in rows)
        ]


@dataclass(frozen=True)
class Line(Shown):
    """What is said of the result as a whole."""

    text: Callable[[dict], str]

    def show(self, result: dict) -> None:
        console.out.print(self.text(result), soft_wrap=True)

    def cards(self, result: dict) -> Iterator[str]:
        yield report.card("In short", note=self.text(result))
