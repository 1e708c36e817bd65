# SPDX-License-Identifier: BSD-3-Clause
"""What commands that measure are asked about the place."""

from __future__ import annotations

from typing import Annotated

import typer

from offpath.base.errors import UserError

Loopback = Annotated[
    bool,
    typer.Option(
        "--loopback", help="On this machine alone: where there is no root for a lab. Links cost nothing then."
    ),
]
# On the nodes of a job.
LAUNCH = (
    "Measure on the nodes of your job: what starts ranks there, like 'srun --mpi=pmi2'. {nodes}, {ppn} and {ranks} are "
    "filled in."
)
CLUSTER = "Name that what is found is kept by. Default: OFFPATH_CLUSTER, or what Slurm calls it."
CORES = "Cores for the service on those nodes, like 62,63."
SHARE = "The service may use the ranks' cores there."


def only_with_launch(cluster: str | None, cores: str | None, share: bool) -> None:
    for option, value in (("--cluster", cluster), ("--cores", cores), ("--share", share)):
        if value:
            raise UserError(f"{option} is about the nodes of a job (none is measured on). Give --launch, too.")
