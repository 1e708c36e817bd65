# SPDX-License-Identifier: BSD-3-Clause
"""`offpath lab slurm ...`: the command line of Slurm on an emulated cluster."""

from __future__ import annotations

import os
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, processes
from offpath.lab import slurm, state
from offpath.lab.cluster import Lab
from offpath.lab.run_command import DEFAULT_NAME, NameArgument
from offpath.launch import mpis

app = commands.group(
    """Slurm on a lab: its own munge, slurmctld, and a slurmd on each node.

Each node has all cores of this machine, so that Slurm binds tasks to real ones. `lab down` ends Slurm, too.""",
)

SetOption = typer.Option("--set", metavar="NAME=VALUE", help="A line for slurm.conf, such as TaskPlugin=task/none.")


@app.command()
def up(name: NameArgument = DEFAULT_NAME, settings: Annotated[Optional[list[str]], SetOption] = None) -> None:
    """Start Slurm on a lab that is up. Returns when jobs can be submitted.

    Examples:

        offpath lab slurm up

        offpath lab slurm up fast --set KillWait=30
    """
    lab = _lab(name)
    slurm.up(lab, settings or [])
    console.note(f"Slurm is up on lab {name}: {lab.plan.node_count} nodes, {slurm.home(lab.plan) / 'slurm.conf'}.")


@app.command()
def down(name: NameArgument = DEFAULT_NAME) -> None:
    """End Slurm and its jobs; the lab stays up.

    Examples:

        offpath lab slurm down
    """
    slurm.down(_lab(name).plan)
    console.note(f"Slurm is down on lab {name}.")


@app.command(context_settings=commands.PASSES_ON)
def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="srun, sbatch, salloc, squeue, ...")],
    name: Annotated[str, typer.Option("--name", help="Which lab.")] = DEFAULT_NAME,
) -> None:
    """Run a command on the lab's head, as somebody who is logged in there. Ends with its status.

    Nodes see the folder in which `lab slurm up` was called, and what `lab run` says that they share.

    Examples:

        offpath lab slurm run -- sinfo

        offpath lab slurm run -- srun -N 2 --mpi=pmix ./my_program
    """
    lab = _lab(name)
    mpis.executable(command[0])
    processes.become(slurm.command(lab, command), os.environ | slurm.variables(lab.plan))


def _lab(name: str) -> Lab:
    state.require_root()
    return Lab.attach(name)
