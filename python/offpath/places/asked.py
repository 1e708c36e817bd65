# SPDX-License-Identifier: BSD-3-Clause
"""What commands that measure are asked about the place, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Optional

import typer

from offpath.base.errors import UserError

Mpis = Annotated[str, typer.Option("--mpi", help="openmpi, mpich or both.")]
OneMpi = Annotated[str, typer.Option("--mpi", help="openmpi or mpich.")]
Ppn = Annotated[int, typer.Option(min=1, help="Ranks per node.")]
Rate = Annotated[str, typer.Option(help="Rate of the lab's links, like 250mbit or 1gbit.")]
Loopback = Annotated[
    bool,
    typer.Option("--loopback", help="On this machine alone, where there is no root for a lab. Links cost nothing."),
]
LabNodes = Annotated[int, typer.Option("--lab", min=0, help="Nodes of a lab to measure in; 0: on this machine.")]
Policy = Annotated[Optional[str], typer.Option(help="What goes to the DPU. Default: what was measured.")]
Runs = Annotated[int, typer.Option(min=1, help="Launches of each, in turns: more, where one differs from the next.")]
Repeats = Annotated[int, typer.Option(min=1, help="Repeats in each launch.")]


@dataclass(frozen=True)
class OnNodes:
    """On the nodes of your job."""

    launch: Annotated[
        Optional[str],
        typer.Option(
            metavar="WORDS",
            help="Measure on the nodes of your job: what starts ranks there, like 'srun --mpi=pmi2'. {nodes}, {ppn} "
            "and {ranks} are filled in.",
        ),
    ] = None
    cluster: Annotated[
        Optional[str],
        typer.Option(
            metavar="NAME", help="Name that what is found is kept by. Default: OFFPATH_CLUSTER, or what Slurm calls it."
        ),
    ] = None
    cores: Annotated[
        Optional[str], typer.Option(metavar="LIST", help="Cores for the service on those nodes, like 62,63.")
    ] = None
    share: Annotated[bool, typer.Option("--share", help="The service may use the ranks' cores there.")] = False

    def check(self) -> None:
        """Raises UserError where the rest is about nothing."""
        for option, value in (("--cluster", self.cluster), ("--cores", self.cores), ("--share", self.share)):
            if value and self.launch is None:
                raise UserError(f"{option} is about the nodes of a job (none is measured on). Give --launch, too.")
