# SPDX-License-Identifier: BSD-3-Clause
"""Tables: on a terminal of 80 columns and in a file nothing of them is cut."""

import dataclasses
import importlib
import io
import os
import pkgutil
import pty
import subprocess

import offpath.bench
import pytest
from conftest import LIMIT_S, ROOT, succeeded
from conftest import offpath as run_offpath
from offpath.base import console
from offpath.base.tables import Table
from offpath.bench.kit import tables as kit
from rich.console import Console

ROWS = [["fft", "16 KiB", *(f"{number}.12345" for number in range(12))], ["[bold]a heading[/]"]]


def lines(table: Table, width: int = 80) -> list[str]:
    Console(width=width, file=(text := io.StringIO())).print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def filled(rows=ROWS, **options) -> Table:
    table = Table("name", "size", *(f"column {number}" for number in range(12)), title="numbers", **options)
    for row in rows:
        table.add_row(*row)
    return table


@pytest.mark.parametrize("width", [40, 80, 1000])
@pytest.mark.parametrize("no_wrap", [False, True])
def test_nothing_is_cut(width, no_wrap):
    table = filled(keys=2)
    for column in table.columns:
        column.no_wrap = no_wrap
    found = lines(table, width)
    assert max(map(len, found)) <= width and "…" not in "".join(found)
    for word in (*(f"column {number}" for number in range(12)), *ROWS[0]):
        assert any(word in line for line in found), (word, found)


def test_what_goes_on_below_says_what_its_rows_are():
    found = lines(filled(keys=2))
    pieces = [line for line in found if "fft" in line]
    assert len(pieces) > 1 and all("16 KiB" in line for line in pieces)
    assert sum("a heading" in line for line in found) == len(pieces)
    assert sum("numbers" in line for line in found) == 1


def test_columns_that_belong_together_stay_so():
    heads = [line for line in lines(filled(keys=2, together=4)) if "column" in line]
    assert len(heads) > 1 and all(head.count("column") % 4 == 0 for head in heads)


def test_rows_without_anything_below_are_not_repeated():
    table = Table("rank", "process", "oldest")
    table.add_row("0", "p" * 40, "")
    table.add_row("1", "p" * 40, "o" * 60)
    assert [line.split()[1] for line in lines(table) if line.startswith("│")] == ["0", "1", "1"]


def test_long_text_is_wrapped_between_words():
    table = Table("variable", "meaning", box=None)
    table.add_row("OFFPATH_X", "long words of prose " * 10)
    assert all("OFFPATH_X" in line or set(line.split()) <= {*"long words of prose variable meaning".split()}
               for line in lines(table))  # fmt: skip


def test_a_word_longer_than_the_terminal_goes_on_below():
    table = Table("name", "where", box=None)
    table.add_row("x", "o" * 200)
    assert "".join(lines(table)).count("o") == 200


def test_a_file_has_each_row_in_one_line():
    """Whatever COLUMNS says: nobody looks there."""
    for width in ("40", "80"):
        found = succeeded(run_offpath("split", "pipecg", env={"COLUMNS": width}))
        longest = next(line for line in found.stdout.splitlines() if "z = n + beta * z" in line)
        assert "gamma = (r, u)" in longest and "…" not in found.stdout


def test_a_terminal_of_80_columns_shows_all_numbers():
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "dumb", "COLUMNS": "80", "LINES": "24"}
    command = [ROOT / "offpath", "split", "pipecg"]
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        text = ""
        try:
            while part := os.read(ours, 4096).decode():
                text += part
        except OSError:  # the end of a terminal
            pass
        assert process.wait(LIMIT_S) == 0
    assert "…" not in text and max(map(len, text.splitlines())) <= 80


def test_all_tables_are_these():
    for file in (ROOT / "python" / "offpath").rglob("*.py"):
        if file.name != "tables.py":
            assert "rich.table import Table" not in file.read_text(), file


def of_benchmarks():
    """What any module of `offpath bench` shows at its end, with long numbers."""
    always = {"when": lambda result: True, "where": lambda row: True, "strong": lambda row: False}
    for module in pkgutil.walk_packages(offpath.bench.__path__, "offpath.bench."):
        benchmark = getattr(importlib.import_module(module.name), "BENCHMARK", None)
        for each in (table for table in getattr(benchmark, "tables", ()) if isinstance(table, kit.Table)):
            cells = ["long-name-16"] * each.keys + ["123456.789"] * (len(each.columns) - each.keys)
            columns = [(name, cell) for (name, _), cell in zip(each.columns, cells)]
            yield dataclasses.replace(each, title="title", columns=columns, on_page_only=False, **always)


@pytest.mark.parametrize("width", [80, console.ANY_WIDTH])
def test_tables_of_benchmarks_are_not_cut(width, monkeypatch):
    shown = list(of_benchmarks())
    assert len(shown) > 30
    for table in shown:
        monkeypatch.setattr(console, "out", Console(width=width, file=(text := io.StringIO()), highlight=False))
        table.show({table.of: [{}, {}]})
        found = text.getvalue().replace(table.note, "").splitlines()
        words = " ".join(found).split()
        assert "…" not in words and (width > 80 or max(map(len, found)) <= 80), found
        assert {word for name, _ in table.columns for word in name.split()} <= set(words), found
        assert words.count("123456.789") == 2 * (len(table.columns) - table.keys), found
