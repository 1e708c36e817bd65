# SPDX-License-Identifier: BSD-3-Clause
"""Which job of a scheduler a run belongs to, and what the user calls it: labels that tell runs apart."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

NAME_VARIABLE = "OFFPATH_JOB_NAME"
# Slurm, PBS, Flux, LSF
IDS = ("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "LSB_JOBID")
NAMES = (NAME_VARIABLE, "SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME")


@dataclass(frozen=True)
class BatchJob:
    id: str = ""  # empty: no scheduler's
    name: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """Those that there are. Prometheus has a label "job" of its own, which means something else."""
        found = {"job_id": self.id, "job_name": self.name}
        return {name: value for name, value in found.items() if value}


def current(name: str | None = None, environ: Mapping[str, str] = os.environ) -> BatchJob:
    """`name`: what the user calls it; else what the environment says."""
    return BatchJob(_first(IDS, environ), name or _first(NAMES, environ))


def _first(variables: tuple[str, ...], environ: Mapping[str, str]) -> str:
    return next((value for variable in variables if (value := environ.get(variable, "").strip())), "")
