# SPDX-License-Identifier: BSD-3-Clause
"""What the measuring commands do with a result ({"meta", "rows", "checks"}): show it, write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import console, files
from offpath.bench import goals, machine_load, measuring
from offpath.pages import report

# Options of the measuring commands.
JsonFile = Annotated[Optional[Path], typer.Option("--json", help="Write the results there.")]
HtmlFile = Annotated[Optional[Path], typer.Option("--html", help="Write a page with charts there.")]


def check_files(json_file: Path | None, html_file: Path | None) -> None:
    """Before anything is measured. Raises UserError for a file that could not be written."""
    for option, file in (("--json", json_file), ("--html", html_file)):
        files.writable_file(file, option)


def deliver(
    result: dict,
    show: Callable[[dict], None],
    json_file: Path | None,
    page: Callable[[dict], str] | None = None,
    html_file: Path | None = None,
) -> None:
    """The end of every benchmark: judges the result, shows it, writes files, and ends the command with its status."""
    meta, rows, wrong = result["meta"], measuring.all_rows(result), len(measuring.wrong_rows(result))
    if not rows:
        console.note("nothing was measured.")
    launches = min([meta.get("runs", 1), *(row["runs"] for row in rows if "runs" in row)])
    result["checks"] = goals.judged(result.get("checks", []), launches)
    result["checks"] += goals.check("results_wrong_count", [wrong] if wrong else [])
    meta["machine_load"] = machine_load.facts(work_share(result))
    show(result)
    show_reachable(meta)
    show_trust(result)
    show_checks(result)
    if json_file:
        files.write_json(json_file, result)
    if html_file and page:
        html_file.write_text(page(result))
    raise typer.Exit(measuring.exit_status(result))


def work_share(result: dict) -> float:
    """Of their cores, what the computations of ranks got that had them for themselves; 1 where nobody looked."""
    meta = result["meta"]
    cores_each = meta.get("cores_available", 0) / max(1, meta.get("nodes", 1) * meta.get("ppn", 1))
    shares = [row["work_share"] for row in measuring.all_rows(result) if row.get("peer") == measuring.ALONE.name
              and "work_share" in row]  # fmt: skip
    return min(shares, default=1.0) if cores_each >= 1 else 1.0


def show_trust(result: dict) -> None:
    """What speaks against the figures: wrong results, numbers that cannot be, others on the machine."""
    for row in measuring.wrong_rows(result):
        console.fail(f"{_labels(row)}: WRONG RESULT. Report this.")
    for row in measuring.all_rows(result):
        for name, value in impossible(row):
            console.note(f"noise: repeat ({name} {value:.4g} of {_labels(row)} cannot be).")
    for size, value in result["meta"].get("reachable_efficiency", {}).items():
        if value > 1:
            console.note(f"noise: repeat (reachable efficiency {value:.4g} at {size} cannot be).")
    busy = (result["meta"]["machine_load"] or {}).get("busy")
    if busy:
        console.note(f"the machine was busy: {'; '.join(busy)} (what others took is in the times). Repeat it at rest.")


def impossible(row: dict) -> Iterator[tuple[str, float]]:
    """What no program can reach: more than all, or costs below zero. That is noise, and nothing to be proud of."""
    for name, value in row.items():
        if not isinstance(value, (int, float)):
            continue
        part_of_all = name.endswith(("efficiency", "_share")) or name in ("perfect", "slowdown")
        cost = name.endswith(("_ns", "_s", "_us", "_per_byte"))
        if (part_of_all and value > 1) or (cost and value < 0):
            yield name, value


def _labels(row: dict) -> str:
    """What says which row it is: words, and the size."""
    words = [value for value in row.values() if isinstance(value, str)]
    return " ".join([*words, *([f"{row['bytes']} bytes"] if "bytes" in row else [])]) or "a row"


def show_reachable(meta: dict) -> None:
    """What the wire itself leaves: nobody can be more efficient than that in this lab."""
    found = meta.get("reachable_efficiency")
    if found:
        sizes = ", ".join(f"{efficiency:.2f} at {size}" for size, efficiency in found.items())
        console.out.print(f"Reachable on this wire (offpath bench wire): {sizes}", markup=False, soft_wrap=True)


def show_checks(result: dict) -> None:
    """Below everything else that is shown: one line, so that it can be grepped."""
    console.out.print(goals.summary(result["checks"]), markup=False, soft_wrap=True)


def show_failures(meta: dict, noun: str) -> None:
    """Below the tables: launches that failed. `noun`: the field that names what is measured."""
    for failure in meta["failures"]:
        console.note(f"failed: {failure['mpi']}, {failure[noun]}, {failure['peer']}: {failure['problem']}")


def conditions_card(meta: dict, noun: str) -> str:
    """The last card of a page."""
    facts = {name: value for name, value in meta.items() if name != "failures"}
    facts["failed launches"] = [f"{each['mpi']} {each[noun]} {each['peer']}" for each in meta["failures"]]
    return report.card("How this was measured", report.facts(facts))
