# SPDX-License-Identifier: BSD-3-Clause
"""What the measuring commands do with a result ({"meta", "rows", "checks"}): show it, write it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath import comparison, console, goals, measuring, report

# Options of the measuring commands.
JsonFile = Annotated[Optional[Path], typer.Option("--json", help="Write the results there.")]
HtmlFile = Annotated[Optional[Path], typer.Option("--html", help="Write a page with charts there.")]


def check_files(json_file: Path | None, html_file: Path | None) -> None:
    """Before anything is measured. Raises UserError for a file that could not be written."""
    for option, file in (("--json", json_file), ("--html", html_file)):
        comparison.writable_file(file, option)


def deliver(
    result: dict,
    show: Callable[[dict], None],
    page: Callable[[dict], str],
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Shows the result, writes the files that are wanted, and ends the command with its exit status."""
    if not result["rows"]:
        console.note("nothing was measured.")
    show(result)
    show_reachable(result["meta"])
    show_checks(result)
    if json_file:
        write(json_file, result)
    if html_file:
        html_file.write_text(page(result))
    raise typer.Exit(measuring.exit_status(result))


def show_reachable(meta: dict) -> None:
    """What the wire itself leaves: nobody can be more efficient than that in this lab."""
    found = meta.get("reachable_efficiency")
    if found:
        sizes = ", ".join(f"{efficiency:.2f} at {size}" for size, efficiency in found.items())
        console.out.print(f"Reachable on this wire (offpath bench wire): {sizes}", markup=False, soft_wrap=True)


def show_checks(result: dict) -> None:
    """Below everything else that is shown: one line, so that it can be grepped."""
    console.out.print(goals.summary(result["checks"]), markup=False, soft_wrap=True)


def write(json_file: Path, result: dict) -> None:
    json_file.write_text(json.dumps(result, indent=1) + "\n")


def show_problems(result: dict, noun: str) -> None:
    """Below the tables: failed launches and wrong results. `noun`: the field that names what is measured."""
    for failure in result["meta"]["failures"]:
        console.note(f"failed: {failure['mpi']}, {failure[noun]}, {failure['peer']}: {failure['problem']}")
    for row in result["rows"]:
        if not row["verified"]:
            console.fail(f"{row[noun]} of {row['bytes']} bytes, {row['peer']}: WRONG RESULT. Report this.")


def conditions_card(meta: dict, noun: str) -> str:
    """The last card of a page."""
    facts = {name: value for name, value in meta.items() if name != "failures"}
    facts["failed launches"] = [f"{each['mpi']} {each[noun]} {each['peer']}" for each in meta["failures"]]
    return report.card("How this was measured", report.facts(facts))
