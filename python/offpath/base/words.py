# SPDX-License-Identifier: BSD-3-Clause
"""The lists that C++ and Python share: tables of include/offpath/words, as the C preprocessor reads them.

A row is MACRO(column, ...). What the columns are called is said in the comment at the top of its file.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

Row = dict[str, Any]  # by column: a number, or a text

# Beside the package where it is installed (packaging/CMakeLists.txt, setup.py), else in the source tree.
_PLACES = ("_words", "include/offpath/words")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_COLUMNS = re.compile(r"^ \*\s+(OFFPATH_\w+)\(([\w, ]+)\)", re.MULTILINE)
_MACRO = re.compile(r"^(OFFPATH_\w+)\(", re.MULTILINE)
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_TOKEN = re.compile(_STRING.pattern + "|.", re.DOTALL)


def folder() -> Path:
    return next(
        parent / place for parent in Path(__file__).resolve().parents for place in _PLACES if (parent / place).is_dir()
    )


@functools.cache
def rows(table: str, macro: str | None = None) -> tuple[Row, ...]:
    """The rows of one macro of a table, by default of the first that its comment explains."""
    return read((folder() / f"{table}.def").read_text(), macro)


def macros(text: str) -> dict[str, list[str]]:
    """The macros of a table, and what their columns are called."""
    return {name: [each.strip() for each in names.split(",")] for name, names in _COLUMNS.findall(text)}


def read(text: str, macro: str | None = None) -> tuple[Row, ...]:
    columns = macros(text)
    wanted = macro or next(iter(columns))
    code = _COMMENT.sub("", text)
    return tuple(
        dict(zip(columns[wanted], _arguments(code, match.end())))
        for match in _MACRO.finditer(code)
        if match[1] == wanted
    )


def numbers(table: str) -> dict[str, int]:
    """What a table of an enumeration counts, by name."""
    return {row["NAME"]: row["number"] for row in rows(table)}


def texts(table: str) -> dict[int, str]:
    """What they are called, by number."""
    return {row["number"]: row["text"] for row in rows(table)}


def _arguments(code: str, at: int) -> list[int | str]:
    """From behind the opening parenthesis to the one that closes it."""
    found, depth = [""], 1
    for token in _TOKEN.finditer(code, at):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            break
        if token[0] == "," and depth == 1:
            found.append("")
        else:
            found[-1] += token[0]
    return [_value(each.strip()) for each in found]


def _value(text: str) -> int | str:
    if text.startswith('"'):  # strings in a row are one
        return re.sub(r"\\(.)", r"\1", "".join(each[1:-1] for each in _STRING.findall(text)))
    return int(text) if re.fullmatch(r"-?\d+", text) else text
