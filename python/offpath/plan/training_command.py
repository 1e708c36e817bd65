# SPDX-License-Identifier: BSD-3-Clause
"""`offpath train-advice`: whether executors should make a training's batches, validate, or both."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich import box

from offpath.base import commands, console, files
from offpath.base.sizes import parse_rate
from offpath.base.tables import Table
from offpath.plan.training import Epoch, median_epoch, predict

WORTH = 1.02  # less is noise
_NUMBERS = ("epoch_s", "batches_s", "validation_s", "batches")
_BYTES = ("batches_bytes", "weights_bytes")

app = commands.alone()


@app.command(rich_help_panel=commands.MEASURE)
def train_advice_command(
    profile: Annotated[Path, typer.Argument(help="What a run with OFFPATH_TORCH_PROFILE=FILE has written.")],
    cores: Annotated[int, typer.Option(min=1, help="Cores for executors.")] = 1,
    slower: Annotated[
        float, typer.Option(min=0.05, max=100, help="How many times longer these cores take than the host's.")
    ] = 1.0,
    link_rate: Annotated[
        Optional[str], typer.Option(help="Rate of the link to them, where they are a DPU's that is another machine.")
    ] = None,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Write the prediction there.")] = None,
) -> None:
    """Say what a PyTorch training would gain from executors of the service.

    Profile one or two epochs in place first: with `on="host"` for offpath.torch.DataLoader and Validation, and
    OFFPATH_TORCH_PROFILE. O-DA: executors make the batches. O-MV: they validate. O-Hy: both.

    Example:

        OFFPATH_TORCH_PROFILE=epochs.json python train.py

        offpath train-advice epochs.json --cores 2 --slower 2.5

        offpath train-advice epochs.json --cores 8 --slower 3 --link-rate 25gbit
    """
    files.writable_file(json_file, "--json")
    epoch = read(profile)
    rate = parse_rate(link_rate) if link_rate else math.inf
    found = predict(epoch, cores, slower, rate)
    show(epoch, found)
    if json_file:
        given = {"cores": cores, "slower": slower, "link_rate": link_rate}
        files.write_json(json_file, given | {"epoch_s": found, "measured": vars(epoch)})


def read(file: Path) -> Epoch:
    """Raises UserError."""
    cure = f"Run it with OFFPATH_TORCH_PROFILE={file}"
    return median_epoch(files.read_json(file, "profile of a training", cure, _epochs))


def _epochs(profile: dict) -> list[dict]:
    rows = profile["epochs"]
    if profile["offpath_training"] != 1 or not rows:
        raise ValueError("it has no epochs")
    for row in rows:
        numbers, counts = [row[name] for name in _NUMBERS], [row.get(name, 0) for name in _BYTES]
        good = all(isinstance(each, (int, float)) and 0 <= each < math.inf for each in numbers)
        if not good or not all(isinstance(each, int) and each >= 0 for each in counts):
            raise ValueError("an epoch makes no sense")
    return rows


def show(epoch: Epoch, found: dict[str, float]) -> None:
    table = Table("way", "epoch s", "gain", title="Predicted", title_justify="left", box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for way, seconds in found.items():
        table.add_row(way, f"{seconds:.3f}", f"{found['host'] / seconds:.2f}")
    console.out.print(table)
    best = min(found, key=lambda way: found[way])
    if found["host"] / found[best] < WORTH:
        console.out.print("Nothing to gain: leave the training as it is.")
    else:
        share = (epoch.batches_s + epoch.validation_s) / max(found["host"], 1e-9)
        console.out.print(
            f"{best} gains most. Batches and validation are {share:.0%} of an epoch: nobody gains more than "
            f"{1 / max(1e-9, 1 - share):.2f} by hiding them."
        )
