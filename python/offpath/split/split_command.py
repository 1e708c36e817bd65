# SPDX-License-Identifier: BSD-3-Clause
"""`offpath split`: divide a conjugate-gradient variant between host and DPU."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich import box
from rich.text import Text

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.tables import Table
from offpath.plan import machine as machines
from offpath.split import columns
from offpath.split.comparing import Comparison, compare, split_program
from offpath.split.costs import Costs, Machine, Side, read_machine
from offpath.split.description import describe
from offpath.split.dominant import DPU, HOST
from offpath.split.drawing import dot_text
from offpath.split.reader import load, variants
from offpath.split.schedule import schedule
from offpath.split.steps import SplitProgram

_SUM_PER_DOUBLING_US = 5.0
_MAX_ROWS = 1 << 40
_TITLES = {
    "alone_blocking": "host alone, standing still while sums are made",
    "alone_overlapped": "host alone, sums hidden where the list allows it",
    "alone_fused": "host alone, the same with fused passes",
    "all_cores": "all cores without a split, the same",
    "split": "split",
}

app = commands.alone()


@app.command(rich_help_panel=commands.MEASURE)
def split_command(
    variant: Annotated[
        str, typer.Argument(metavar="[VARIANT|FILE]", help="A shipped variant (see --list), or a file with one.")
    ] = "pipecg",
    weights: Annotated[
        Optional[str],
        typer.Option(
            metavar="FILE|measured",
            help="What operations cost: TOML, a machine file of offpath calibrate (.json), or measured here (2 s).",
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, max=_MAX_ROWS, help="Rows of the matrix, of all ranks.")] = 1_000_000,
    nnz_per_row: Annotated[float, typer.Option(min=0, max=1e6, help="Nonzeros per row of the matrix.")] = 27.0,
    ranks: Annotated[int, typer.Option(min=1, help="Ranks that share the rows.")] = 1,
    reduction_us: Annotated[
        Optional[float], typer.Option(min=0, help="Time of one global sum. Default: 5 for every doubling of ranks.")
    ] = None,
    balance: Annotated[
        bool, typer.Option("--balance", help="Give operations back to the host as long as that shortens the iteration.")
    ] = False,
    svg: Annotated[Optional[Path], typer.Option(help="Draw the data-flow graph there (needs Graphviz).")] = None,
    json_file: Annotated[
        Optional[Path], typer.Option("--json", help="Write the program of both sides there; - prints it, no text.")
    ] = None,
    schedule_file: Annotated[
        Optional[Path], typer.Option("--schedule", help="Write what PETSc's offpath_split solver runs there.")
    ] = None,
    list_variants: Annotated[bool, typer.Option("--list", help="Show the shipped variants.")] = False,
) -> None:
    """Split a preconditioned CG variant between host and DPU, and predict what that gains.

    A variant is a list of vector updates, dot products, preconditioners, matrix-vector products and scalar expressions
    (its format is in docs/guide-krylov.md). The dominant path between preconditioner and matrix-vector product, and
    back through the values that an iteration hands to the next, stays on the host; the DPU gets everything else. Both
    programs are printed side by side: *-> w* sends w, *<- w* waits for it, and operations in one line share one pass
    over memory.

    Times are predicted from memory traffic (bytes per row, bandwidth of each side and of both together) or from
    measured seconds per row. Without --weights, host and DPU draw 12 GB/s each and do not disturb each other; give
    --weights measured to see what this machine's shared memory allows.

    Examples:

        offpath split pipecg

        offpath split cgcg --rows 8000000 --ranks 8 --reduction-us 40 --svg cgcg.svg

        offpath split my_variant.txt --weights measured --json my_variant.json
    """
    if list_variants:
        for name in variants():
            print(f"{name:<10} {load(name).title}")
        return
    oplist = load(variant)
    for option, file in (("--svg", svg), ("--json", json_file), ("--schedule", schedule_file)):
        if str(file) != "-":
            files.writable_file(file, option)
    per_sum_us = reduction_us if reduction_us is not None else _SUM_PER_DOUBLING_US * math.ceil(math.log2(ranks))
    costs = Costs(oplist, _machine(weights, per_sum_us * 1e-6, reduction_us), math.ceil(rows / ranks), nnz_per_row)
    program = split_program(oplist, costs, balance)
    if svg:
        _draw(dot_text(program), svg)
    if schedule_file:
        schedule_file.write_text(schedule(program))
    if json_file:
        text = json.dumps(describe(program, costs), indent=1) + "\n"
        if str(json_file) == "-":
            print(text, end="")
            return
        files.write_text(json_file, text)
    _show(program, costs, compare(program, costs))


def _planned_machine(machine: dict, reduction_s: float) -> Machine:
    """The planner's machine: a core of the host and one of the service, which share a memory."""
    rates = machines.rates(machine)
    host = rates.core_memory_bytes_per_s
    return Machine(
        Side(host),
        Side(host * rates.service_speed),
        shared_bytes_per_s=rates.two_cores_memory_bytes_per_s,
        exchange_latency_s=rates.handover_s,
        reduction_s=reduction_s,
    )


def _machine(weights: str | None, reduction_s: float, given_us: float | None) -> Machine:
    if weights == "measured":
        from offpath.split.measuring import measured_machine

        return measured_machine(reduction_s)
    if weights and weights.endswith(".json"):
        return _planned_machine(machines.load(Path(weights)), reduction_s)
    machine = read_machine(Path(weights)) if weights else Machine(reduction_s=reduction_s)
    if given_us is None and weights and machine.reduction_s:
        return machine
    return Machine(**(vars(machine) | {"reduction_s": reduction_s}))


def _draw(text: str, file: Path) -> None:
    tool = shutil.which("dot")
    if not tool:
        raise UserError("dot is not installed (it draws the graph). Install Debian's graphviz, or leave --svg out.")
    result = subprocess.run([tool, "-Tsvg", "-o", str(file)], input=text, capture_output=True, text=True)
    if result.returncode != 0:
        said = (result.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise UserError(f"dot cannot draw {file} ({said}). Check the file's name and the space left.", 1)


def _show(program: SplitProgram, costs: Costs, found: Comparison) -> None:
    oplist = program.oplist
    console.out.print(Text.assemble((oplist.title or oplist.name, "bold"), f" ({oplist.source})"), soft_wrap=True)
    sides = Table("host", "DPU", box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
    for row in columns.rows(program):
        sides.add_row(*row)
    console.out.print(sides)
    header = ("per iteration", "direction", "bytes", "copies", "received in the")
    moved = Table(*header, box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
    for row in columns.transfers(program, costs):
        moved.add_row(*row)
    console.out.print(moved)
    times = Table("predicted", "ms per iteration", "against split", box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
    for name, each in vars(found).items():
        times.add_row(_TITLES[name], f"{each.total_s * 1e3:.3f}", f"{each.total_s / found.split.total_s:.2f} x")
    console.out.print(times)
    print(_verdict(found))


def _verdict(found: Comparison) -> str:
    """What binds the split iteration, in one line."""
    split = found.split
    gain = 100 * (1 - split.total_s / found.alone_overlapped.total_s)
    if split.roof_s >= split.schedule_s:
        binds = "the shared memory's bandwidth"
    else:
        side = max((HOST, DPU), key=split.busy_s.get)
        share = split.busy_s[side] / split.total_s if split.total_s else 1.0
        binds = {HOST: "the host", DPU: "the DPU"}[side] if share > 0.95 else "waiting for each other and for sums"
    if gain < 0:
        return f"Split takes {-gain:.0f} % longer than the host alone; what binds it is {binds}. See --balance."
    return f"Split saves {gain:.0f} % of the host's time alone; what binds it is {binds}."
