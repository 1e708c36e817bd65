# SPDX-License-Identifier: BSD-3-Clause
"""Where messages go: results to stdout (`out`), everything about the work itself to stderr (`err`)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

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

        width = ANY_WIDTH if name == "out" and not sys.stdout.isatty() else None
        _made[name] = Console(stderr=name == "err", highlight=False, emoji=False, width=width)
    return _made[name]


def note(text: str) -> None:
    """One line about what is going on, never wrapped, so that it can be grepped."""
    if "err" in _made:  # it may be showing something that the line is to stand above
        _made["err"].print(f"offpath: {text}", markup=False, soft_wrap=True)
    else:
        print(f"offpath: {text}", file=sys.stderr)


def fail(text: str) -> None:
    """One line about what went wrong."""
    _console("err").print(f"[bold red]offpath:[/] {_escaped(text)}", soft_wrap=True)


def is_interactive() -> bool:
    """True when a person is watching: live displays are allowed."""
    return sys.stderr.isatty()


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")
