# SPDX-License-Identifier: BSD-3-Clause
"""Where in a program a call was made: from file and offset, as profiles hold them, to function and source line."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from offpath.oldest import zip_equal


def names(places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """As much as symbols allow: "solve (solve.c:42)", "solve", or "program+0x1234"."""
    by_file: dict[str, list[int]] = {}
    for file, offset in set(places):
        by_file.setdefault(file, []).append(offset)
    found = {}
    for file, offsets in by_file.items():
        # The return address is behind the call; the byte before it belongs to the call's line.
        lines = _addr2line(file, [offset - 1 for offset in offsets])
        for offset, (function, line) in zip_equal(offsets, lines):
            found[file, offset] = _text(file, offset, function, line)
    return found


def _addr2line(file: str, offsets: list[int]) -> list[tuple[str, str]]:
    unknown = [("??", "??:0")] * len(offsets)
    if shutil.which("addr2line") is None or not Path(file).is_file():
        return unknown
    command = ["addr2line", "-f", "-C", "-s", "-e", file, *map(hex, offsets)]
    result = subprocess.run(command, capture_output=True, text=True)
    lines = result.stdout.splitlines()
    if result.returncode != 0 or len(lines) != 2 * len(offsets):
        return unknown
    return list(zip_equal(lines[::2], lines[1::2]))


def _text(file: str, offset: int, function: str, line: str) -> str:
    place = line.split(" (")[0]
    known_line = not place.startswith("??") and not place.endswith((":?", ":0"))
    if function != "??":
        return f"{function.split('(')[0]} ({place})" if known_line else function.split("(")[0]
    return f"{Path(file).name}+{offset:#x}"
