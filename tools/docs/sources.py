# SPDX-License-Identifier: BSD-3-Clause
"""C and C++ sources as far as the documents need them: string literals, and the calls that they are arguments of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GAP = "…"  # what a message is filled in with

TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#[^\n]*)"
    r'|R"\((?P<raw>.*?)\)"|"(?P<string>(?:\\.|[^"\\\n])*)"'
    r"|(?P<char>'(?:\\.|[^'\\\n])+')|(?P<name>[A-Za-z_][\w:.]*(?:->[\w:.]+)*)|(?P<mark>.)",
    re.DOTALL | re.MULTILINE,
)


@dataclass
class Call:
    name: str
    words: list[str] = field(default_factory=list)  # names among the arguments so far


@dataclass(frozen=True)
class Literal:
    """A string, joined with its neighbours, as an argument of a call (the innermost; none: name is empty)."""

    text: str
    call: Call
    words: tuple[str, ...]  # of the call, before it
    file: Path
    line: int


def files(*folders: str, suffixes: str = "c cpp h hpp") -> list[Path]:
    found = [file for folder in folders for suffix in suffixes.split() for file in (ROOT / folder).rglob(f"*.{suffix}")]
    return sorted(found)


def literals(file: Path) -> Iterator[Literal]:
    """In the order of the file. `"a" "b"` is one, and so is `"a" + x + "b"`, with a gap."""
    text = file.read_text(errors="replace")
    calls: list[Call] = [Call("")]
    pending: list | None = None  # text, call, words, position, depth of parentheses, whether a + came
    name = ""
    for token in TOKEN.finditer(text):
        kind, mark = token.lastgroup, token[0]
        if kind == "skip":
            continue
        if kind in ("string", "raw"):
            piece = token["raw"] if kind == "raw" else _unescaped(token["string"])
            if pending and pending[4] == len(calls):
                pending[0] += (GAP if pending[5] else "") + piece
                pending[5] = False
            elif not pending:
                pending = [piece, calls[-1], tuple(calls[-1].words), token.start(), len(calls), False]
            continue
        inside = pending and (len(calls) > pending[4] or (pending[5] and (kind == "name" or mark in "(+.>")))
        if pending and mark == "+" and len(calls) == pending[4]:
            pending[5] = inside = True
        if pending and not inside:
            gap = GAP if pending[5] else ""
            yield Literal(pending[0] + gap, pending[1], pending[2], file, text.count("\n", 0, pending[3]) + 1)
            pending = None
        if mark == "(":
            calls.append(Call(name))
        elif mark == ")" and len(calls) > 1:
            calls.pop()
        elif mark == ";":
            del calls[1:]
        elif kind == "name":
            calls[-1].words.append(mark)
        name = mark if kind == "name" else ""


def _unescaped(text: str) -> str:
    known = {"n": "\n", "t": "\t", "0": "\0"}
    return re.sub(r"\\(.)", lambda found: known.get(found[1], found[1]), text)
