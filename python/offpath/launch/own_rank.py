# SPDX-License-Identifier: BSD-3-Clause
"""Which process of a parallel job we are, when a launcher has started us: `srun -n 64 offpath run -- ./my_program`."""

from __future__ import annotations

import os
from collections.abc import Mapping

# The rank, and the number of ranks, as Hydra, PMIx, Open MPI and Slurm say it.
VARIABLES = (
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # of the step: a batch script is one process
)


def own_rank(environ: Mapping[str, str] = os.environ) -> int | None:
    """None: no launcher has started us."""
    return next((int(environ[rank]) for rank, _ in VARIABLES if environ.get(rank, "").isdigit()), None)


def job_size(environ: Mapping[str, str] = os.environ) -> int | None:
    """How many processes our launcher has started; None: nobody says."""
    return next((int(environ[size]) for rank, size in VARIABLES
                 if rank in environ and environ.get(size, "").isdigit()), None)  # fmt: skip


def leads() -> bool:
    """Speaks for the job: its first process, or the only one."""
    return own_rank() in (None, 0)
