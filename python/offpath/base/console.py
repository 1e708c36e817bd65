# SPDX-License-Identifier: BSD-3-Clause
"""Where messages go: results to stdout, everything about the work itself to stderr."""

import sys

from rich.console import Console

ANY_WIDTH = 100_000  # of a file or a pipe: no line is wrapped there, none is cut

out = Console(highlight=False, width=None if sys.stdout.isatty() else ANY_WIDTH)
err = Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """One line about what is going on, never wrapped, so that it can be grepped."""
    err.print(f"offpath: {text}", markup=False, soft_wrap=True)


def fail(text: str) -> None:
    """One line about what went wrong."""
    err.print(f"[bold red]offpath:[/] {_escaped(text)}", soft_wrap=True)


def is_interactive() -> bool:
    """True when a person is watching: live displays are allowed."""
    return sys.stderr.isatty()


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")
