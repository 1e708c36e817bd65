# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench training`: what gradients cost beside the computation of a training, with Offpath and with gloo."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich import box
from rich.table import Table

from offpath import comparison, console, measuring, results
from offpath.errors import UserError
from offpath.lab.cluster import ENTER, Lab
from offpath.lab.plan import host_address, parse_rate
from offpath.paths import paths

PEERS = ("gloo", "offpath")
LIMIT_S = 600
_PORT = "29500"
_TIMES = ("compute", "exchange", "step")


def app_command(
    nodes: Annotated[int, typer.Option(min=2, max=16, help="Nodes of the lab, one rank each.")] = 2,
    rates: Annotated[str, typer.Option("--rate", help="Rates of the lab's links, separated by commas.")] = (
        "250mbit,1gbit"
    ),
    share: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Part of a step that gradients take where nothing overlaps.")
    ] = 0.4,
    layers: Annotated[int, typer.Option(min=1, help="Layers of the model.")] = 8,
    width: Annotated[int, typer.Option(min=8, help="Width of a layer.")] = 512,
    bucket_mb: Annotated[float, typer.Option(min=0.001, help="MiB that are added up at a time.")] = 1.0,
    runs: Annotated[int, typer.Option(min=1, help="Launches at each rate.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Steps of each kind in a launch, in turns.")] = 10,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Write the results there.")] = None,
) -> None:
    """Compare DistributedDataParallel on the backends offpath and gloo of torch.distributed, in one process, in turns.

    compute is a step without communication, exchange the gradients alone, step both, as DistributedDataParallel
    overlaps them. The batch is as long as the share of gloo's exchange wants it. best is what no backend passes: the
    longer of the computation, and its forward third and the exchange behind it. Both use the rank's core.

    Example:

        offpath bench training --rate 1gbit --nodes 2 --json training.json
    """
    chosen = [rate.strip() for rate in rates.split(",")]
    for rate in chosen:
        parse_rate(rate)
    comparison.writable_file(json_file, "--json")
    if not comparison.lab_is_possible():
        raise UserError("A training is measured in a lab (which needs root). Run it as root.")
    python = interpreter()
    paths().require_service()
    arguments = [
        "--layers", str(layers), "--width", str(width), "--bucket-mb", str(bucket_mb), "--share", str(share),
        "--rounds", str(rounds),
    ]  # fmt: skip
    rows = []
    for rate in chosen:
        found = [launch(python, nodes, rate, arguments) for _ in range(runs)]
        rows += summary(rate, parse_rate(rate), nodes, found)
    result = {"meta": comparison.base_meta([]) | {"runs": runs, "rounds": rounds, "share": share}, "rows": rows}
    show(rows)
    if json_file:
        results.write(json_file, result)


def interpreter() -> str:
    """One that has PyTorch: this one, else the system's."""
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        if python and subprocess.run([python, "-c", "import torch, numpy"], capture_output=True).returncode == 0:
            return python
    raise UserError(
        "No Python here has PyTorch (what is measured is a training). Install it: apt install python3-torch"
    )


def launch(python: str, nodes: int, rate: str, arguments: list[str]) -> dict:
    with Lab(nodes=nodes, rate=rate) as lab:
        env = {
            "PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0",
            "MASTER_ADDR": host_address(1), "MASTER_PORT": _PORT, "OFFPATH_SERVICE_SHARE": "1",
            "OFFPATH_SERVICE_WRAPPER": f"{ENTER} {lab.name} %h-dpu",
        }  # fmt: skip
        run = lab.mpirun(
            "openmpi", 1, [python, "-m", "offpath.torch.training_step", *arguments], env=env, timeout=LIMIT_S
        )
    if run.returncode != 0:
        said = (run.stderr.strip() or run.stdout.strip()).splitlines() or ["nothing was said"]
        raise UserError(f"A launch of the training failed: {said[-1]}")
    return json.loads(run.stdout.strip().splitlines()[-1])


def summary(rate: str, bits_per_s: int, nodes: int, launches: list[Mapping]) -> list[dict]:
    """A row for each backend: medians over the launches' medians, and the least and greatest of these."""
    rows = []
    medians = {
        peer: {what: [statistics.median(launch["times"][peer][what]) for launch in launches] for what in _TIMES}
        for peer in PEERS
    }
    least_exchange = min(min(medians[peer]["exchange"]) for peer in PEERS)
    for peer in PEERS:
        found = medians[peer]
        compute = statistics.median(found["compute"])
        rows.append({
            "rate": rate, "rate_bits_per_s": bits_per_s, "nodes": nodes, "backend": peer,
            "gradient_bytes": launches[0]["gradient_bytes"],
            "same": all(launch["largest_difference"] == 0 for launch in launches),
            **{f"{what}_s": statistics.median(found[what]) for what in _TIMES},
            "step_min_s": min(found["step"]), "step_max_s": max(found["step"]),
            "best_s": max(compute, compute / 3 + least_exchange),
            "gain": statistics.median(
                theirs / ours for theirs, ours in zip(medians["gloo"]["step"], found["step"])
            ),
        })  # fmt: skip
    return rows


def show(rows: list[dict]) -> None:
    columns = ("rate", "backend", "compute ms", "exchange ms", "step ms", "min", "max", "best", "over gloo")
    table = Table(*columns, title="A training step", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    for row in rows:
        names = ("compute_s", "exchange_s", "step_s", "step_min_s", "step_max_s", "best_s")
        times = [measuring.ms_text(row[name] * 1e9) for name in names]
        table.add_row(row["rate"], row["backend"], *times, f"{row['gain']:.2f}")
        if not row["same"]:
            console.note(f"the gradients of {row['backend']} differ from gloo's in the last digits.")
    console.out.print(table)
