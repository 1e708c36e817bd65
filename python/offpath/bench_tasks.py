# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench tasks`: what a task costs: an empty one alone, and how many a second."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath import comparison, console, goals, results
from offpath.errors import UserError
from offpath.paths import paths

LIMIT_S = 600


def app_command(
    cores: Annotated[Optional[str], typer.Option(help="Cores of the service; default: those that are spare.")] = None,
    share: Annotated[bool, typer.Option(help="The service may use the program's cores.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Tasks that are timed alone.")] = 2000,
    count: Annotated[int, typer.Option(min=1, help="Tasks that are timed together.")] = 200000,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Write the results there.")] = None,
) -> None:
    """Measure what tasks cost: the time of an empty one from its submission to its end, by testing and by waiting for
    it, and how many are done in a second while hundreds are under way. One process, no MPI.

    With --cores 2,3 worker and executor have a core each, and neither is the program's: that is what spare cores give.

    Example:

        offpath bench tasks --cores 2,3 --json tasks.json
    """
    comparison.writable_file(json_file, "--json")
    with tempfile.TemporaryDirectory() as folder:
        row = _measure(Path(folder) / "row.json", cores, share, repeats, count)
    result = {"meta": comparison.base_meta([]), "rows": [row], "checks": checks(row)}
    results.show_checks(result)
    if json_file:
        results.write(json_file, result)


def checks(row: Mapping) -> list[dict]:
    return [
        *goals.check("tasks_empty_us", [row["empty_task_wait_us"]]),
        *goals.check("tasks_piece_us", [1e6 / row["tasks_per_second"]]),
    ]


def _measure(file: Path, cores: str | None, share: bool, repeats: int, count: int) -> dict:
    words = [str(paths().require_tasks_program()), "--functions", str(paths().require_tasks_functions())]
    words += ["--repeats", str(repeats), "--count", str(count), "--json", str(file)]
    env = os.environ | ({"OFFPATH_SERVICE_SHARE": "1"} if share else {})
    done = subprocess.run(
        words + (["--cores", cores] if cores else []), env=env, capture_output=True, text=True, timeout=LIMIT_S
    )
    if done.returncode != 0:
        raise UserError(done.stderr.strip() or "The benchmark of tasks has ended without a word.", 1)
    console.out.print(done.stdout.rstrip(), highlight=False, markup=False)
    return json.loads(file.read_text()) | {"cores": cores, "shared": share}
