# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench training`: batches, validations and gradients of a PyTorch program beside its computation."""

from __future__ import annotations

import json
import os
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

from offpath import comparison, console, goals, measuring, results
from offpath.errors import UserError
from offpath.lab.cluster import ENTER, Lab
from offpath.lab.plan import host_address, parse_rate
from offpath.paths import paths
from offpath.plan.training import median_epoch, predict

PEERS = ("gloo", "offpath")
LIMIT_S = 600
_PORT = "29500"
_OURS = {"PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1"}  # for another interpreter
_TIMES = ("compute", "exchange", "step")


def app_command(
    parts: Annotated[str, typer.Option("--parts", help="What to measure: epochs, gradients.")] = "epochs,gradients",
    model: Annotated[str, typer.Option(help="Of the epochs: resnet20 or shufflenet.")] = "resnet20",
    shape: Annotated[str, typer.Option(help="Of their pictures: cifar10 or tiny-imagenet.")] = "cifar10",
    pictures: Annotated[int, typer.Option(min=16, help="Pictures of an epoch.")] = 256,
    augmentation: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="Part of an epoch that making batches takes on the host.")
    ] = 0.12,
    nodes: Annotated[int, typer.Option(min=2, max=16, help="Nodes of the lab, one rank each.")] = 2,
    rates: Annotated[str, typer.Option("--rate", help="Rates of the lab's links, separated by commas.")] = (
        "250mbit,1gbit"
    ),
    share: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Part of a step that gradients take where nothing overlaps.")
    ] = 0.4,
    layers: Annotated[int, typer.Option(min=1, help="Layers of the model whose gradients are added up.")] = 8,
    width: Annotated[int, typer.Option(min=8, help="Width of a layer.")] = 512,
    bucket_mb: Annotated[float, typer.Option(min=0.001, help="MiB that are added up at a time.")] = 1.0,
    runs: Annotated[int, typer.Option(min=1, help="Launches of each part.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Epochs, and steps of each kind, in a launch, in turns.")] = 10,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Write the results there.")] = None,
) -> None:
    """Measure what PyTorch programs gain: batches and validations by executors, gradients by the service.

    epochs: one core trains, another one helps, in five ways in turns. host: it does nothing. workers: torch's
    DataLoader has a worker there. O-DA: an executor makes the batches. O-MV: an executor validates. O-Hy: both.
    Losses and validations of all ways must be the same bits. One process, on this machine.

    gradients: DistributedDataParallel on the backends offpath and gloo, in one process, in turns, in a lab. compute is
    a step without communication, exchange the gradients alone, step both, as DistributedDataParallel overlaps them. The
    batch is as long as the share of gloo's exchange wants it. best is what no backend passes: the longer of the
    computation, and its forward third and the exchange behind it. Both use the rank's core.

    Examples:

        offpath bench training --parts epochs --augmentation 0.12

        offpath bench training --parts gradients --rate 1gbit --nodes 2 --json training.json
    """
    wanted = measuring.parse_names(parts, ["epochs", "gradients"], "a part")
    chosen = [rate.strip() for rate in rates.split(",")]
    for rate in chosen:
        parse_rate(rate)
    comparison.writable_file(json_file, "--json")
    if "gradients" in wanted and not comparison.lab_is_possible():
        raise UserError("Gradients are measured in a lab (which needs root). Run it as root, or give --parts epochs.")
    python = interpreter()
    paths().require_service()
    result: dict = {"meta": comparison.base_meta([]) | {"runs": runs, "rounds": rounds}}
    if "epochs" in wanted:
        arguments = ["--model", model, "--shape", shape, "--pictures", str(pictures), "--share", str(augmentation)]
        result["epochs"] = epochs([epoch_launch(python, [*arguments, "--epochs", str(rounds)]) for _ in range(runs)])
        show_epochs(result["epochs"])
    if "gradients" in wanted:
        arguments = [
            "--layers", str(layers), "--width", str(width), "--bucket-mb", str(bucket_mb), "--share", str(share),
            "--rounds", str(rounds),
        ]  # fmt: skip
        result["meta"]["share"] = share
        result["rows"] = []
        for rate in chosen:
            found = [launch(python, nodes, rate, arguments) for _ in range(runs)]
            result["rows"] += summary(rate, parse_rate(rate), nodes, found)
        show(result["rows"])
    result["checks"] = checks(result)
    results.show_checks(result)
    if json_file:
        results.write(json_file, result)


def checks(result: Mapping) -> list[dict]:
    ways = {row["way"]: row for row in result.get("epochs", ())}
    gradients = [row["gain"] for row in result.get("rows", ()) if row["backend"] == "offpath"]
    found = [] if not ways else [
        *goals.check("training_batches_gain_ratio", [ways["O-DA"]["gain"]]),
        *goals.check("training_both_gain_ratio", [ways["O-Hy"]["gain"]]),
        *goals.check("training_workers_ratio", [ways["O-DA"]["epoch_s"] / ways["workers"]["epoch_s"]]),
    ]  # fmt: skip
    return found + goals.check("training_gradients_gain_ratio", gradients)


def epoch_launch(python: str, arguments: list[str]) -> dict:
    command = [python, "-m", "offpath.torch.epochs", *arguments]
    run = subprocess.run(command, env=os.environ | _OURS, capture_output=True, text=True, timeout=LIMIT_S)
    return _said(run.returncode, run.stdout, run.stderr)


def epochs(launches: list[Mapping]) -> list[dict]:
    """A row for each way."""
    rows = []
    predicted = predict(median_epoch([epoch for launch in launches for epoch in launch["profile"]]))
    for way in launches[0]["epochs"]:
        medians = [statistics.median(launch["epochs"][way]) for launch in launches]
        hosts = [statistics.median(launch["epochs"]["host"]) for launch in launches]
        rows.append({
            "way": way, "epoch_s": statistics.median(medians), "epoch_min_s": min(medians),
            "epoch_max_s": max(medians), "gain": statistics.median(host / own for host, own in zip(hosts, medians)),
            "predicted_s": predicted.get(way), "samples_per_s": launches[0]["samples"] / statistics.median(medians),
            "host_cpu": statistics.median(launch["host_cpu"][way] for launch in launches),
            "same": all(launch["same"] for launch in launches),
        })  # fmt: skip
    return rows


def show_epochs(rows: list[dict]) -> None:
    columns = ("way", "epoch s", "min", "max", "predicted", "samples/s", "host's core", "over host")
    table = Table(*columns, title="An epoch", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for row in rows:
        times = [f"{row[name]:.3f}" for name in ("epoch_s", "epoch_min_s", "epoch_max_s")]
        predicted = f"{row['predicted_s']:.3f}" if row["predicted_s"] else "-"
        rest = [f"{row['samples_per_s']:.0f}", f"{row['host_cpu']:.2f}", f"{row['gain']:.2f}"]
        table.add_row(row["way"], *times, predicted, *rest)
    console.out.print(table)
    if not all(row["same"] for row in rows):
        console.fail("losses or validations of the ways differ: WRONG RESULT. Report this.")


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
        env = _OURS | {
            "GLOO_SOCKET_IFNAME": "eth0", "MASTER_ADDR": host_address(1), "MASTER_PORT": _PORT,
            "OFFPATH_SERVICE_SHARE": "1", "OFFPATH_SERVICE_WRAPPER": f"{ENTER} {lab.name} %h-dpu",
        }  # fmt: skip
        run = lab.mpirun(
            "openmpi", 1, [python, "-m", "offpath.torch.training_step", *arguments], env=env, timeout=LIMIT_S
        )
    return _said(run.returncode, run.stdout, run.stderr)


def _said(status: int, out: str, err: str) -> dict:
    if status != 0:
        said = (err.strip() or out.strip()).splitlines() or ["nothing was said"]
        raise UserError(f"A launch of the training failed: {said[-1]}")
    return json.loads(out.strip().splitlines()[-1])


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
    columns = ("rate", "backend", "compute", "exchange", "step ms", "min", "max", "best", "over gloo")
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
