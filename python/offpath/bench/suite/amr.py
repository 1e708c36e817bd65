# SPDX-License-Identifier: BSD-3-Clause
"""What tasks bring to a program whose work moves by itself (apps/amr), for `offpath bench amr`: patches by the ranks,
as tasks that stay home, and as tasks that may go to other nodes; in turns, and all with the same bits."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.paths import paths
from offpath.bench.kit import Benchmark, Case, Site, Table, options, turns
from offpath.launch.mpis import OPENMPI
from offpath.places import asked, comparison
from offpath.places.comparison import Place
from offpath.plan.balance import Loads

OWN, STATIC, BALANCED = "own", "static", "balanced"
BENCHMARK = Benchmark([
    Table("Patches that are computed where they are, or elsewhere", [
        ("patches", "{variant}"), ("seconds", "{seconds:.3f}"), ("min", lambda row: f"{min(row['all_seconds']):.3f}"),
        ("max", lambda row: f"{max(row['all_seconds']):.3f}"), ("gain", "{gain:.2f}"),
        ("at most", "{gain_at_most:.2f}"), ("imbalance", "{imbalance:.2f}"),
        ("of the run as a whole", "{standing_imbalance:.2f}"),
    ]),
])  # fmt: skip

app = commands.alone()


@app.command()
def amr_command(
    nodes: Annotated[int, typer.Option(min=2, help="Nodes of the lab, a rank on each.")] = 2,
    rate: asked.Rate = "1gbit",
    mpi: asked.OneMpi = OPENMPI,
    steps: Annotated[int, typer.Option(min=1, help="Time steps of each launch.")] = 200,
    work: Annotated[int, typer.Option(min=1, help="Each step of a patch is computed so often.")] = 4,
    runs: asked.Runs = 3,
    json_file: options.JsonFile = None,
) -> None:
    """Time of shallow water whose work moves from rank to rank (apps/amr), in a lab.

    *own*: each rank computes its patches. *static*: each patch is a task of its rank's node. *balanced*: tasks may go
    to nodes that have time. Gain: the time of own / this one. *at most*: what `offpath plan balance` says of own.
    The nodes of a lab share the cores of this machine: with more nodes than cores nothing can be gained.

    Example:

        offpath bench amr --json amr.json
    """
    options.check_files(json_file)
    options.require_lab("Work that moves between nodes is", rate)
    kind = options.one_mpi(mpi, OPENMPI)
    argv = [str(paths().app("amr_tasks", kind)), "--case", "wave", "--across", "24", "--down", "3"]
    argv += ["--steps", str(steps), "--work", str(work)]
    cases = [Case({"variant": each}, functools.partial(_launch, kind, argv, each)) for each in (OWN, STATIC, BALANCED)]
    site = Site([cases], lambda: comparison.place(nodes, 1, rate, False))
    meta = comparison.base_meta([kind]) | turns.measure([site], runs) | {"steps": steps, "work": work}
    own = cases[0].launches
    rows = [{**case.labels, **_row(case.launches, own)} for case in cases if case.launches and own]
    BENCHMARK.deliver({"meta": meta, "rows": rows}, json_file)


def _launch(mpi: str, argv: Sequence[str], variant: str, where: Place) -> dict:
    env = {"OFFPATH_SERVICE_SHARE": "1", "OFFPATH_TASK_EXECUTORS": "1"}
    env["OFFPATH_TASK_BALANCE"] = "on" if variant == BALANCED else "off"
    words = [*argv, "--patches", "own" if variant == OWN else "tasks"]
    return comparison.run_for_json(where, mpi, words, False, env)[0]


def _row(found: Sequence[dict], own: Sequence[dict]) -> dict:
    seconds = [run["seconds"] for run in found]
    alone = statistics.median_low([run["seconds"] for run in own])
    loads = next(Loads(run["seconds"], run["loads_s"]) for run in own if run["seconds"] == alone)
    return {
        "seconds": statistics.median(seconds), "all_seconds": seconds, "gain": alone / statistics.median(seconds),
        "gain_at_most": alone / loads.balanced_s(), "imbalance": loads.imbalance,
        "standing_imbalance": loads.standing_imbalance, "runs": len(found),
        "verified": all(run["verified"] and run["bits"] == own[0]["bits"] for run in found),
    }  # fmt: skip
