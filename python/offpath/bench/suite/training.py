# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench training`: batches, validations and gradients of a PyTorch program beside its computation."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated, Optional

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_numbers
from offpath.bench import placements, training_epochs, training_steps
from offpath.bench.kit import Benchmark, Case, Site, options, turns
from offpath.bench.training_epochs import LIMIT_S, OURS, PORT, Where
from offpath.lab.cluster import ENTER, Lab
from offpath.lab.plan import host_address, parse_rate
from offpath.places import asked, comparison


def _usual(rows: Sequence[dict], way: str) -> list[dict]:
    """The goals for epochs are those of one node and a core of its own."""
    return [row for row in rows if row.get("way") == way and row["placement"] == comparison.CORES and row["nodes"] == 1]


BENCHMARK = Benchmark(
    [training_epochs.TABLE, training_steps.GRADIENTS, training_steps.SHARDED],
    {
        "training_batches_gain_ratio": lambda rows: [row["gain"] for row in _usual(rows, "O-DA")],
        "training_both_gain_ratio": lambda rows: [row["gain"] for row in _usual(rows, "O-Hy")],
        "training_workers_ratio": lambda rows: [
            row["epoch_s"] / workers["epoch_s"] for row in _usual(rows, "O-DA") for workers in _usual(rows, "workers")
        ],
        "training_sharded_gain_ratio": lambda rows: [
            row["gain"] for row in rows if row.get("way") == "offpath, overlap"
        ],
        "training_gradients_gain_ratio": lambda rows: [row["gain"] for row in rows if row.get("backend") == "offpath"],
    },
)  # fmt: skip

app = commands.alone()


@app.command()
def training_command(
    parts: Annotated[
        str, typer.Option("--parts", help="What to measure: epochs, gradients, sharded.")
    ] = "epochs,gradients",
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
    nodes: Annotated[
        int, typer.Option(min=2, max=16, help="Nodes of the lab of gradients and sharded models, one rank each.")
    ] = 2,
    rates: Annotated[str, typer.Option("--rate", help="Rates of the lab's links, separated by commas.")] = (
        "250mbit,1gbit"
    ),
    share: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Part of a step that exchanges take where nothing overlaps.")
    ] = 0.4,
    mapped: Annotated[
        bool, typer.Option("--mapped", help="Gradients' buckets are moved into memory that the service maps.")
    ] = False,
    runs: asked.Runs = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Epochs, and steps of each kind, in a launch, in turns.")] = 10,
    json_file: options.JsonFile = None,
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

    sharded: a model that fully_shard was called for, on the backends gloo and offpath, as FSDP does it on CPUs and with
    offpath.torch.overlap. gather is all parameters of a layer, reduce its gradients, exchange what a step has of these,
    one after the other. It wants PyTorch 2.8 or newer.

    Examples:

        offpath bench training --parts epochs --augmentation 0.12

        offpath bench training --parts epochs --placement cores,dpu,node --epoch-nodes 1,2

        offpath bench training --parts gradients --rate 1gbit --nodes 2 --mapped --json training.json

        offpath bench training --parts sharded --rate 100mbit,1gbit
    """
    wanted = options.names(parts, ["epochs", "gradients", "sharded"], "a part")
    places = options.names(placement, placements.PLACEMENTS, "a placement")
    counts = parse_numbers(trained_on, "--epoch-nodes", most=16)
    bits = {rate: parse_rate(rate) for rate in options.words(rates)}
    if link_rate:
        parse_rate(link_rate)
    options.check_files(json_file)
    wheres = [Where(place, count, list(bits)[-1], link_rate) for place in places for count in counts]
    if wanted != ["epochs"] or any(where.in_lab for where in wheres):
        options.require_lab("Gradients, other machines and several nodes (all but --parts epochs alone) are")
    python = interpreter(training_steps.SHARDED_NEEDS if "sharded" in wanted else "import torch")
    built(paths().service)
    of_epochs = ["--model", model, "--shape", shape, "--pictures", str(pictures), "--share", str(augmentation)]
    of_epochs += ["--epochs", str(rounds)]
    epochs = [
        Case({"placement": where.placement, "nodes": where.nodes},
             lambda _, where=where: training_epochs.launch(python, where, of_epochs))
        for where in wheres if "epochs" in wanted
    ]  # fmt: skip
    of_steps = ["--share", str(share), "--rounds", str(rounds)]
    gradients, sharded = (
        [
            Case({"rate": rate, "rate_bits_per_s": bits[rate], "nodes": nodes},
                 functools.partial(launch, python, module, nodes, rate, of_steps, mapped))
            for rate in bits if part in wanted
        ]
        for part, module in (("gradients", "offpath.torch.training_step"), ("sharded", "offpath.torch.sharded_step"))
    )  # fmt: skip
    meta = comparison.base_meta([]) | turns.measure([Site([epochs, gradients, sharded])], runs)
    result: dict = {"meta": meta | {"rounds": rounds, "share": share, "mapped": mapped}}
    if epochs:
        found = (training_epochs.rows(where, case.launches) for where, case in zip(wheres, epochs) if case.launches)
        result["epochs"] = [row for rows in found for row in rows]
    steps = (("rows", gradients, training_steps.of_gradients), ("sharded", sharded, training_steps.of_sharded))
    for name, cases, rows_of in steps:
        if cases:
            launched = [case for case in cases if case.launches]
            result[name] = [row for case in launched for row in rows_of(case.labels, case.launches, rounding(nodes))]
    BENCHMARK.deliver(result, json_file)


def interpreter(needs: str = "import torch") -> str:
    """One that has PyTorch, and what is said in Python: this one, else that of PATH, else the system's."""
    for python in (sys.executable, shutil.which("python3"), shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        if python and subprocess.run([python, "-c", f"import numpy; {needs}"], capture_output=True).returncode == 0:
            return python
    if needs == training_steps.SHARDED_NEEDS:
        raise UserError(
            "No Python here has PyTorch 2.8 or newer (a sharded model is measured). Install it (pip install torch "
            "numpy) and have its python3 in PATH first."
        )
    raise UserError(
        "No Python here has PyTorch (what is measured is a training). Install it: apt install python3-torch"
    )


def launch(python: str, module: str, nodes: int, rate: str, arguments: list[str], mapped: bool, _: object) -> dict:
    with Lab(nodes=nodes, rate=rate) as lab:
        env = OURS | {
            "GLOO_SOCKET_IFNAME": "eth0", "MASTER_ADDR": host_address(1), "MASTER_PORT": PORT,
            "OFFPATH_SERVICE_SHARE": "1", "OFFPATH_SERVICE_WRAPPER": f"{ENTER} {lab.name} %h-dpu",
        }  # fmt: skip
        if mapped:  # as `offpath run` does it; after two uses, so that it is done before anything is measured
            env |= {"OFFPATH_MAPPED": "2", "LD_PRELOAD": str(paths().watch_library)}
        run = lab.mpirun("openmpi", 1, [python, "-m", module, *arguments], env=env, timeout=LIMIT_S)
    return training_epochs.said(run.returncode, run.stdout, run.stderr)


def rounding(nodes: int) -> float:
    """By how much of the largest gradient two backends may differ: two numbers have one sum, more have an order."""
    return 0.0 if nodes == 2 else 1e-5
