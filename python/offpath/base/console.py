# SPDX-License-Identifier: BSD-3-Clause
"""Where messages go: results to stdout (`out`), everything about the work itself to stderr (`err`)."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from offpath.base import files

if TYPE_CHECKING:
    from rich.console import Console

    out: Console
    err: Console

ANY_WIDTH = 100_000  # of a file or a pipe: no line is wrapped there, none is cut


_made: dict[str, Console] = {}


def __getattr__(name: str) -> Console:
    if name not in ("out", "err"):
        raise AttributeError(name)
    return _console(name)


def _console(name: str) -> Console:
    """When it is first used: rich takes longer to load than starting a program does otherwise."""
    if name not in _made:
        from rich.console import Console

        width = ANY_WIDTH if name == "out" and not _is_terminal(sys.stdout) else None
        _made[name] = Console(stderr=name == "err", highlight=False, emoji=False, width=width)
    return _made[name]


@contextlib.contextmanager
def to_file(path: Path) -> Iterator[Console]:
    """What prints there; no line is wrapped."""
    from rich.console import Console

    with files.replacing(path) as file:
        yield Console(file=file, highlight=False, emoji=False, width=ANY_WIDTH)


def note(text: str) -> None:
    """One line about what is going on, never wrapped, so that it can be grepped."""
    with contextlib.suppress(OSError):
        if "err" in _made:  # it may be showing something that the line is to stand above
            _made["err"].print(f"offpath: {_one_line(text)}", markup=False, soft_wrap=True)
        elif sys.stderr is not None:  # closed; print() would take stdout in its place
            print(f"offpath: {_one_line(text)}", file=sys.stderr)


def fail(text: str) -> None:
    """One line about what went wrong."""
    from rich.text import Text

    _console("err").print(Text.assemble(("offpath:", "bold red"), f" {_one_line(text)}"), soft_wrap=True)


def is_interactive() -> bool:
    """True when a person is watching: live displays are allowed."""
    return _is_terminal(sys.stderr)


def _is_terminal(stream: TextIO | None) -> bool:
    """None: it was closed before we were started."""
    return stream is not None and stream.isatty()


def _one_line(text: str) -> str:
    """What would end it, or tell the terminal something, as names of files may, is written as Python does."""
    return re.sub("[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda found: repr(found[0])[1:-1], text)
