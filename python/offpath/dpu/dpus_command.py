# SPDX-License-Identifier: BSD-3-Clause
"""`offpath dpus ...`: what a list of DPUs says, and whether what it names is there."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from offpath.base import commands, console
from offpath.base.errors import UserError
from offpath.dpu import checking, dpufile

VARIABLE = "OFFPATH_DPUS"

app = commands.group("DPUs that are other machines: the list that `offpath run --dpus` takes.", commands.LOOK)

ListArgument = Annotated[str, typer.Argument(metavar="LIST", help="A file, or [HOST=]DPU:PORT,... as for run --dpus.")]
HereOption = Annotated[bool, typer.Option("--here", help="Only the DPUs of this host.")]


@app.command("list")
def show(dpus: ListArgument, here: HereOption = False, as_json: commands.AsJson = False) -> None:
    """Show what a list says, host by host; nothing is asked but what it says.

    Examples:

        offpath dpus list dpus.txt

        offpath dpus list dpus.txt --here
    """
    chosen = _chosen(dpus, here)
    if as_json:
        print(json.dumps([{"host": dpu.host, "dpu": dpu.name, "entry": dpu.entry} for dpu in chosen], indent=1))
        return
    for dpu in chosen:
        said = "".join(f" {name}={value}" for name, value in dpu.wishes.items())
        console.out.print(f"{dpu.host}: {dpu.name}{said}", soft_wrap=True, highlight=False, markup=False)


@app.command()
def check(dpus: ListArgument, here: HereOption = False, as_json: commands.AsJson = False) -> None:
    """Ask every DPU of a list, from here: is it there, and what is the way to it like? One line each.

    Ends with 1 if one is missing. A DPU that only its host reaches is asked there, with --here.

    Examples:

        offpath dpus check dpus.txt

        mpirun -hostfile hosts -N 1 offpath dpus check dpus.txt --here
    """
    findings = checking.check(_chosen(dpus, here))
    if as_json:
        print(json.dumps([finding.as_json() for finding in findings], indent=1))
    else:
        for finding in findings:
            console.out.print(_line(finding), soft_wrap=True, highlight=False, markup=False)
    raise typer.Exit(1 if any(finding.problem for finding in findings) else 0)


def variables(given: str | None, required: bool) -> dict[str, str]:
    """What a job is told of `offpath run --dpus`; an empty value takes away what it inherits. Raises UserError."""
    if given is None:
        if required and not (os.environ.get(VARIABLE) or os.environ.get("OFFPATH_DPU")):
            raise UserError("--dpus-required is about DPUs (none is named). Give --dpus, too.")
        return {}
    if given == "none":
        return {VARIABLE: "", "OFFPATH_DPU": ""}
    chosen = dpufile.read(given)
    dpufile.check_names(chosen)
    if required:
        checking.require(chosen)
    own_key = checking.key_variables() if any(dpu.port for dpu in chosen) else {}
    return {VARIABLE: dpufile.variable(chosen), "OFFPATH_DPU": "", **own_key}


def _chosen(given: str, here: bool) -> list[dpufile.Dpu]:
    dpus = dpufile.read(given)
    dpufile.check_names(dpus)
    return checking.of_this_host(dpus) if here else dpus


def _line(finding: checking.Finding) -> str:
    start = f"{finding.dpu.host}: {finding.dpu.name}: "
    if finding.problem:
        return f"{start}MISSING: {finding.problem.rstrip('.')}."
    found = finding.found
    count = checking.count_cores(found)
    cores = f"{found['cores']} cores" if count == found["cores"] else f"{count} of {found['cores']} cores"
    jobs = f", {found['jobs']} of {found['most_jobs']} jobs" if found["most_jobs"] else ""
    return (
        f"{start}up, Offpath {found['version']}, {found['machine']}, {cores}{jobs}, "
        f"link {_rate(min(found['to_bits_per_s'], found['from_bits_per_s']))}, "
        f"{found['latency_ns'] / 1000:.0f} us, clock {found['clock_offset_ns'] / 1e9:+.6f} s "
        "(each counts from its boot; times are converted)"
    )


def _rate(bits_per_s: float) -> str:
    return f"{bits_per_s / 1e9:.2f} Gbit/s" if bits_per_s >= 1e9 else f"{bits_per_s / 1e6:.0f} Mbit/s"
