# SPDX-License-Identifier: BSD-3-Clause
"""Where in a program a call was made: from file and offset, as recordings hold them, to functions and source lines.

offpath-sites (src/sites/) looks them up, once the run is over. What it finds is kept with the recording, as the program
may be another one later, or not be there.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from offpath.base.oldest import zip_equal
from offpath.base.paths import paths

LIMIT_S = 120  # of large programs whose debug information comes from elsewhere

Place = tuple[str, int]


@dataclass(frozen=True)
class Frame:
    function: str
    file: str
    line: int

    @property
    def source(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


@dataclass(frozen=True)
class Site:
    """A call site. Where there is debug information it has frames: the innermost first, each inlined into the next."""

    file: str
    offset: int
    frames: tuple[Frame, ...] = ()
    symbol: str = ""
    symbol_offset: int = 0

    @property
    def text(self) -> str:
        """One of these: send (comm.hpp:7) in solve (solve.c:42), main+0x1a3 (program), program+0x1234."""
        if self.frames:
            return " in ".join(f"{frame.function or '?'} ({frame.source})" for frame in self.frames)
        name = Path(self.file).name
        return f"{self.symbol}+{self.symbol_offset:#x} ({name})" if self.symbol else f"{name}+{self.offset:#x}"

    @property
    def source(self) -> str:
        """Lines only, where there are any."""
        return " in ".join(frame.source for frame in self.frames) or self.text

    def to_json(self) -> dict:
        frames = [[frame.function, frame.file, frame.line] for frame in self.frames]
        found = {"frames": frames, "symbol": self.symbol, "symbol_offset": self.symbol_offset}
        return {"file": self.file, "offset": self.offset, "text": self.text, **found}


UNKNOWN = Site("unknown", 0)


def place_of(line: dict) -> Place | None:
    """Of a call of a recording."""
    file, offset = line.get("file"), line.get("offset")
    return (file, offset) if isinstance(file, str) and isinstance(offset, int) else None


def call_of(line: dict) -> str:
    """The MPI function of a call of a recording. Older ones have the name in small letters."""
    name = str(line.get("call", ""))
    return f"MPI_{name[:1].upper()}{name[1:]}"


def of_lines(lines: Iterable[dict], known: dict[Place, Site] | None = None) -> dict[Place, Site]:
    """The sites of a recording's calls: those that are known, and others looked up here."""
    found = dict(known or {})
    missing = {place for line in lines if (place := place_of(line)) is not None} - found.keys()
    return found | look_up(missing)


def look_up(places: Iterable[Place]) -> dict[Place, Site]:
    by_file: dict[str, list[int]] = {}
    for file, offset in sorted(set(places)):
        by_file.setdefault(file, []).append(offset)
    found = {}
    for (file, offsets), answers in zip_equal(by_file.items(), _ask(list(by_file.items()))):
        for offset, answer in zip_equal(offsets, answers):
            found[file, offset] = _site(file, offset, answer) or Site(file, offset)
    return found


def from_json(rows: object) -> dict[Place, Site]:
    """What to_json() said; whatever does not make sense is left out, and may be looked up again."""
    found = {}
    for row in rows if isinstance(rows, list) else ():
        place = place_of(row) if isinstance(row, dict) else None
        site = _site(*place, row) if place else None
        if site:
            found[place] = site
    return found


def _ask(question: list) -> list[list[dict]]:
    nothing: list[list[dict]] = [[{}] * len(offsets) for _, offsets in question]
    program = paths().sites_program
    if not question or not program.exists():
        return nothing
    try:
        result = subprocess.run(
            [str(program)], input=json.dumps(question), capture_output=True, text=True, timeout=LIMIT_S
        )
        answer = json.loads(result.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return nothing
    return answer


def _site(file: str, offset: int, row: dict) -> Site | None:
    frames, symbol, into = row.get("frames"), row.get("symbol"), row.get("symbol_offset")
    if not isinstance(frames, list) or not isinstance(symbol, str) or not isinstance(into, int):
        return None
    try:
        known = tuple(Frame(str(function), str(source), int(line)) for function, source, line in frames)
    except (TypeError, ValueError, OverflowError):
        return None
    return Site(file, offset, known, symbol, into)
