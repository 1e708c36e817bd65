# SPDX-License-Identifier: BSD-3-Clause
"""Options of the measuring commands, and what lists with commas say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import files
from offpath.base.errors import UserError
from offpath.lab.plan import parse_rate
from offpath.places import comparison

JsonFile = Annotated[Optional[Path], typer.Option("--json", help="Write the results there.")]
HtmlFile = Annotated[Optional[Path], typer.Option("--html", help="Write a page with charts there.")]


def check_files(json_file: Path | None, html_file: Path | None = None) -> None:
    """Before anything is measured. Raises UserError for a file that could not be written."""
    for option, file in (("--json", json_file), ("--html", html_file)):
        files.writable_file(file, option)


def require_lab(what: str, rate: str = "") -> None:
    """Raises UserError where there can be none, or none with such links. `what`: who needs it, as the beginning of a
    sentence."""
    if not comparison.lab_is_possible():
        raise UserError(f"{what} measured in a lab (which needs root). Run it as root.")
    if rate:
        parse_rate(rate)


def one_mpi(choice: str, usual: str) -> str:
    return comparison.chosen_mpis(choice if choice != comparison.BOTH else usual)[0]


def names(text: str, known: Iterable[str], what: str) -> list[str]:
    """The names in "a,b", each once. Raises UserError for one that is not in `known`."""
    found, known = words(text), list(known)
    for name in found:
        if name not in known:
            raise UserError(f"'{name}' is not {what} measured here. Give some of {', '.join(known)}.")
    return found


def words(text: str) -> Sequence[str]:
    """Each once."""
    return list(dict.fromkeys(word.strip() for word in text.split(",")))
