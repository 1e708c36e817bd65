# SPDX-License-Identifier: BSD-3-Clause
"""The lists that C++ and Python share: tables of include/offpath/words, as the C preprocessor reads them.

A row is OFFPATH_<macro>(column, ...). What the columns are called is said in the comment at the top of its file.
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
_COLUMNS = re.compile(r"^ \*\s+OFFPATH_(\w+)\(([\w, ]+)\)", re.MULTILINE)
_OTHERWISE = re.compile(r"^#define OFFPATH_(\w+)\(([\w, ]+)\) OFFPATH_(\w+)\(", re.MULTILINE)
_MACRO = re.compile(r"^OFFPATH_(\w+)\(", re.MULTILINE)
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_TOKEN = re.compile(_STRING.pattern + r'|[(),]|[^(),"]+')


def folder() -> Path:
    return next(
        parent / place for parent in Path(__file__).resolve().parents for place in _PLACES if (parent / place).is_dir()
    )


@functools.cache
def rows(table: str, *wanted: str) -> tuple[Row, ...]:
    """The rows of some macros of a table, in its order; by default of the first that its comment explains. A macro that
    is not asked for means what the table says that it means otherwise."""
    return read((folder() / f"{table}.def").read_text(), *wanted)


def macros(text: str) -> dict[str, list[str]]:
    """The macros of a table, and what their columns are called."""
    return {name: [each.strip() for each in names.split(",")] for name, names in _COLUMNS.findall(text)}


def read(text: str, *wanted: str) -> tuple[Row, ...]:
    columns = macros(text)
    wanted = wanted or tuple(columns)[:1]
    code = _COMMENT.sub("", text)
    otherwise = {
        match[1]: ([each.strip() for each in match[2].split(",")], match[3], _arguments(code, match.end()))
        for match in _OTHERWISE.finditer(code)
    }
    found = []
    for match in _MACRO.finditer(code):
        macro, values = match[1], _arguments(code, match.end())
        while macro not in wanted and macro in otherwise:
            names, macro, given = otherwise[macro]
            known = dict(zip(names, values))
            values = [known.get(str(value), value) for value in given]
        if macro in wanted:
            found.append(dict(zip(columns[macro], values)))
    return tuple(found)


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
