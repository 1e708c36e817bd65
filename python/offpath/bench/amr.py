# SPDX-License-Identifier: BSD-3-Clause
"""What tasks bring to a program whose work moves by itself (apps/amr), for `offpath bench amr`: patches by the ranks,
as tasks that stay home, and as tasks that may go to other nodes; in turns, and all with the same bits."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.tables import Table
from offpath.bench import results
from offpath.lab import Lab
from offpath.launch.mpis import OPENMPI
from offpath.places import asked, comparison
from offpath.plan.balance import Loads

OWN, STATIC, BALANCED = "own", "static", "balanced"
LIMIT_S = 300

app = commands.alone()


@app.command()
def amr_command(
    nodes: Annotated[int, typer.Option(min=2, help="Nodes of the lab, a rank on each.")] = 2,
    rate: asked.Rate = "1gbit",
    mpi: Annotated[str, typer.Option(help="openmpi or mpich.")] = OPENMPI,
    steps: Annotated[int, typer.Option(min=1, help="Time steps of each launch.")] = 200,
    work: Annotated[int, typer.Option(min=1, help="Each step of a patch is computed so often.")] = 4,
    runs: asked.Runs = 3,
    json_file: results.JsonFile = None,
) -> None:
    """Time of shallow water whose work moves from rank to rank (apps/amr), in a lab.

    *own*: each rank computes its patches. *static*: each patch is a task of its rank's node. *balanced*: tasks may go
    to nodes that have time. Gain: the time of own / this one. *at most*: what `offpath plan balance` says of own.
    The nodes of a lab share the cores of this machine: with more nodes than cores nothing can be gained.

    Example:

        offpath bench amr --json amr.json
    """
    files.writable_file(json_file, "--json")
    (kind,) = comparison.chosen_mpis(mpi) if mpi != comparison.BOTH else [OPENMPI]
    options = ["--case", "wave", "--across", "24", "--down", "3", "--steps", str(steps), "--work", str(work)]
    written: dict[str, list[dict]] = {OWN: [], STATIC: [], BALANCED: []}
    with Lab(nodes=nodes, rate=rate) as lab:
        for _ in range(runs):
            for variant, found in written.items():
                found.append(_launch(lab, kind, variant, options))
    rows = [_row(variant, found, written[OWN]) for variant, found in written.items()]
    emulated = {"place": "lab", "hardware": "emulated", "nodes": nodes, "rate": rate}
    meta = comparison.base_meta([kind]) | emulated | {"steps": steps, "runs": runs, "work": work}
    results.deliver({"meta": meta, "rows": rows}, _show, json_file)


def _row(variant: str, found: Sequence[dict], own: Sequence[dict]) -> dict[str, Any]:
    seconds = [run["seconds"] for run in found]
    alone = statistics.median_low([run["seconds"] for run in own])
    loads = next(Loads(run["seconds"], run["loads_s"]) for run in own if run["seconds"] == alone)
    return {
        "variant": variant, "seconds": statistics.median(seconds), "all_seconds": seconds,
        "gain": alone / statistics.median(seconds), "gain_at_most": alone / loads.balanced_s(),
        "imbalance": loads.imbalance, "standing_imbalance": loads.standing_imbalance, "runs": len(found),
        "verified": all(run["verified"] and run["bits"] == own[0]["bits"] for run in found),
    }  # fmt: skip


def _launch(lab: Lab, mpi: str, variant: str, options: Sequence[str]) -> dict:
    by_tasks = variant != OWN
    env = {"OFFPATH_SERVICE_SHARE": "1", "OFFPATH_TASK_EXECUTORS": "1"}
    env["OFFPATH_TASK_BALANCE"] = "on" if variant == BALANCED else "off"
    with tempfile.TemporaryDirectory(prefix="amr-", dir=lab.plan.state_dir) as folder:
        file = Path(folder) / "out.json"
        words = [str(paths().app("amr_tasks", mpi)), *options, "--patches", "tasks" if by_tasks else "own"]
        done = lab.mpirun(mpi, 1, [*words, "--json", str(file)], False, env, LIMIT_S)
        if done.returncode != 0:
            raise UserError((done.stderr or "").strip()[-500:] or "amr has ended without a word.", 1)
        return json.loads(file.read_text())


def _show(result: dict) -> None:
    rows = result["rows"]
    table = Table("patches", "seconds", "min", "max", "gain", "at most", box=None, pad_edge=False)
    for row in rows:
        seconds = [f"{value:.3f}" for value in (row["seconds"], min(row["all_seconds"]), max(row["all_seconds"]))]
        table.add_row(row["variant"], *seconds, f"{row['gain']:.2f}", f"{row['gain_at_most']:.2f}")
    console.out.print(table)
    moving, standing = rows[0]["imbalance"], rows[0]["standing_imbalance"]
    console.out.print(f"imbalance {moving:.2f}, of the run as a whole {standing:.2f}")
