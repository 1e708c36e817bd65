# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench training`: batches, validations and gradients of a PyTorch program beside its computation."""

from __future__ import annotations

import functools
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Optional

import typer
from rich import box

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import ms_text
from offpath.base.tables import Table
from offpath.bench import goals, measuring, placements, results, training_epochs
from offpath.bench.training_epochs import LIMIT_S, OURS, PORT, Where
from offpath.lab.cluster import ENTER, Lab
from offpath.lab.plan import host_address, parse_rate
from offpath.places import comparison

PEERS = ("gloo", "offpath")
_TIMES = ("compute", "exchange", "step")

app = commands.alone()


@app.command()
def training_command(
    parts: Annotated[str, typer.Option("--parts", help="What to measure: epochs, gradients.")] = "epochs,gradients",
    model: Annotated[str, typer.Option(help="Of the epochs: resnet20 or shufflenet.")] = "resnet20",
    shape: Annotated[str, typer.Option(help="Of their pictures: cifar10 or tiny-imagenet.")] = "cifar10",
    pictures: Annotated[int, typer.Option(min=16, help="Pictures of an epoch.")] = 256,
    augmentation: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="Part of an epoch that making batches takes on the host.")
    ] = 0.12,
    placement: Annotated[
        str, typer.Option("--placement", help="Where the executors of epochs are: cores, dpu, node; with commas.")
    ] = comparison.CORES,
    trained_on: Annotated[
        str, typer.Option("--epoch-nodes", help="Nodes that train together in the epochs, with commas.")
    ] = "1",
    link_rate: Annotated[Optional[str], typer.Option(help="Rate of the link between a host and its DPU.")] = None,
    nodes: Annotated[int, typer.Option(min=2, max=16, help="Nodes of the gradients' lab, one rank each.")] = 2,
    rates: Annotated[str, typer.Option("--rate", help="Rates of the lab's links, separated by commas.")] = (
        "250mbit,1gbit"
    ),
    share: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Part of a step that gradients take where nothing overlaps.")
    ] = 0.4,
    mapped: Annotated[
        bool, typer.Option("--mapped", help="Gradients' buckets are moved into memory that the service maps.")
    ] = False,
    runs: Annotated[int, typer.Option(min=1, help="Launches of each part.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Epochs, and steps of each kind, in a launch, in turns.")] = 10,
    json_file: results.JsonFile = None,
) -> None:
    """Measure what PyTorch programs gain: batches and validations by executors, gradients by the service.

    epochs: one core trains, another one helps, in several ways in turns. host: it does nothing. workers: torch's
    DataLoader has a worker there, or beside the training where the helping core is another machine's. O-N: it computes
    the gradients of a share of each batch. O-DA: an executor makes the batches. O-MV: it validates. O-Hy: both. Losses
    and validations of all ways but O-N must be the same bits. Several nodes share both cores.

    gradients: DistributedDataParallel on the backends offpath and gloo, in one process, in turns, in a lab. compute is
    a step without communication, exchange the gradients alone, step both, as DistributedDataParallel overlaps them. The
    batch is as long as the share of gloo's exchange wants it. best is what no backend passes:
    the computation and the last bucket behind it, or what precedes the first bucket and all of the exchange. Both use
    the rank's core.

    Examples:

        offpath bench training --parts epochs --augmentation 0.12

        offpath bench training --parts epochs --placement cores,dpu,node --epoch-nodes 1,2

        offpath bench training --parts gradients --rate 1gbit --nodes 2 --mapped --json training.json
    """
    wanted = measuring.parse_names(parts, ["epochs", "gradients"], "a part")
    places = measuring.parse_names(placement, placements.PLACEMENTS, "a placement")
    counts = node_counts(trained_on)
    chosen = [rate.strip() for rate in rates.split(",")]
    for rate in chosen:
        parse_rate(rate)
    files.writable_file(json_file, "--json")
    wheres = [Where(place, count, chosen[-1], link_rate) for place in places for count in counts]
    if link_rate:
        parse_rate(link_rate)
    in_lab = "gradients" in wanted or ("epochs" in wanted and any(where.in_lab for where in wheres))
    if in_lab and not comparison.lab_is_possible():
        raise UserError(
            "Gradients, other machines and several nodes are measured in a lab (which needs root). Run it as root, or "
            "give --parts epochs alone."
        )
    python = interpreter()
    paths().require_service()
    result: dict = {"meta": comparison.base_meta([]) | {"runs": runs, "rounds": rounds}}
    if "epochs" in wanted:
        arguments = [
            "--model", model, "--shape", shape, "--pictures", str(pictures), "--share", str(augmentation),
            "--epochs", str(rounds),
        ]  # fmt: skip
        result["epochs"] = []
        for where in wheres:
            found = training_epochs.rows(where, [training_epochs.launch(python, where, arguments) for _ in range(runs)])
            result["epochs"] += found
    if "gradients" in wanted:
        arguments = ["--share", str(share), "--rounds", str(rounds)]
        result["meta"] |= {"share": share, "mapped": mapped}
        result["rows"] = []
        for rate in chosen:
            launches = [launch(python, nodes, rate, arguments, mapped) for _ in range(runs)]
            result["rows"] += summary(rate, parse_rate(rate), nodes, launches)
    result["checks"] = checks(result)
    results.deliver(result, functools.partial(show, wheres), json_file)


def node_counts(text: str) -> list[int]:
    counts = [int(word) for word in text.split(",") if word.strip().isdigit()]
    if len(counts) != len(text.split(",")) or not all(1 <= count <= 16 for count in counts):
        raise UserError(f"'{text}' names no numbers of nodes. Give some from 1 to 16, such as 1,2.")
    return counts


def checks(result: Mapping) -> list[dict]:
    """The goals for epochs are those of one node and a core of its own."""
    usual = [row for row in result.get("epochs", ()) if row["placement"] == comparison.CORES and row["nodes"] == 1]
    ways = {row["way"]: row for row in usual}
    gradients = [row["gain"] for row in result.get("rows", ()) if row["backend"] == "offpath"]
    found = [] if not ways else [
        *goals.check("training_batches_gain_ratio", [ways["O-DA"]["gain"]]),
        *goals.check("training_both_gain_ratio", [ways["O-Hy"]["gain"]]),
        *goals.check("training_workers_ratio", [ways["O-DA"]["epoch_s"] / ways["workers"]["epoch_s"]]),
    ]  # fmt: skip
    return found + goals.check("training_gradients_gain_ratio", gradients)


def interpreter() -> str:
    """One that has PyTorch: this one, else the system's."""
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        if python and subprocess.run([python, "-c", "import torch, numpy"], capture_output=True).returncode == 0:
            return python
    raise UserError(
        "No Python here has PyTorch (what is measured is a training). Install it: apt install python3-torch"
    )


def launch(python: str, nodes: int, rate: str, arguments: list[str], mapped: bool) -> dict:
    with Lab(nodes=nodes, rate=rate) as lab:
        env = OURS | {
            "GLOO_SOCKET_IFNAME": "eth0", "MASTER_ADDR": host_address(1), "MASTER_PORT": PORT,
            "OFFPATH_SERVICE_SHARE": "1", "OFFPATH_SERVICE_WRAPPER": f"{ENTER} {lab.name} %h-dpu",
        }  # fmt: skip
        if mapped:  # as `offpath run` does it; after two uses, so that it is done before anything is measured
            env |= {"OFFPATH_MAPPED": "2", "LD_PRELOAD": str(paths().watch_library)}
        run = lab.mpirun(
            "openmpi", 1, [python, "-m", "offpath.torch.training_step", *arguments], env=env, timeout=LIMIT_S
        )
    return training_epochs.said(run.returncode, run.stdout, run.stderr)


def rounding(nodes: int) -> float:
    """By how much of the largest gradient two backends may differ: two numbers have one sum, more have an order."""
    return 0.0 if nodes == 2 else 1e-5


def summary(rate: str, bits_per_s: int, nodes: int, launches: list[Mapping]) -> list[dict]:
    """A row for each backend: medians over the launches' medians, and the least and greatest of these."""
    rows = []
    medians = {
        peer: {what: [statistics.median(launch["times"][peer][what]) for launch in launches] for what in _TIMES}
        for peer in PEERS
    }
    buckets = max(1, launches[0]["buckets"])
    least_exchange = min(min(medians[peer]["exchange"]) for peer in PEERS)
    for peer in PEERS:
        found = medians[peer]
        compute = statistics.median(found["compute"])
        rows.append({
            "rate": rate, "rate_bits_per_s": bits_per_s, "nodes": nodes, "backend": peer,
            "gradient_bytes": launches[0]["gradient_bytes"],
            "verified": all(launch["largest_difference"] <= rounding(nodes) for launch in launches),
            "runs": len(launches),
            **{f"{what}_s": statistics.median(found[what]) for what in _TIMES},
            "step_min_s": min(found["step"]), "step_max_s": max(found["step"]),
            # The last bucket begins when the computation ends; the first one when a part of the way back is done.
            "best_s": max(
                compute + least_exchange / buckets, compute * (1 + 2 / buckets) / 3 + least_exchange
            ),
            "gain": statistics.median(
                theirs / ours for theirs, ours in zip(medians["gloo"]["step"], found["step"])
            ),
        })  # fmt: skip
    return rows


def show(wheres: Sequence[Where], result: Mapping) -> None:
    for where in wheres if "epochs" in result else ():
        here = (where.placement, where.nodes)
        training_epochs.show(where, [row for row in result["epochs"] if (row["placement"], row["nodes"]) == here])
    if "rows" in result:
        show_gradients(result["rows"])


def show_gradients(rows: list[dict]) -> None:
    columns = ("rate", "backend", "compute", "exchange", "step ms", "min", "max", "best", "over gloo")
    table = Table(*columns, title="A training step", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    for row in rows:
        names = ("compute_s", "exchange_s", "step_s", "step_min_s", "step_max_s", "best_s")
        times = [ms_text(row[name] * 1e9) for name in names]
        table.add_row(row["rate"], row["backend"], *times, f"{row['gain']:.2f}")
    console.out.print(table)
