# SPDX-License-Identifier: BSD-3-Clause
"""What was measured on a cluster, by its name and by MPI: CONFIG/offpath/clusters/NAME/MPI/machine.json and policy."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from offpath.base.errors import UserError
from offpath.base.paths import config_folder

NAME_VARIABLE, MACHINE_VARIABLE = "OFFPATH_CLUSTER", "OFFPATH_MACHINE"
SCHEDULERS = ("SLURM_CLUSTER_NAME",)  # what schedulers call it in their jobs
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
MACHINE, POLICY = "machine.json", "policy"


def root(environ: Mapping[str, str] = os.environ) -> Path:
    return config_folder(environ) / "clusters"


def checked(name: str, source: str) -> str:
    """Raises UserError unless it can name a folder."""
    if not NAME.fullmatch(name):
        raise UserError(f"{source}: '{name}' cannot name a cluster (a folder gets that name). Use letters and digits.")
    return name


def name(environ: Mapping[str, str] = os.environ) -> str | None:
    """Of the cluster we are on; None where nobody says."""
    for variable in (NAME_VARIABLE, *SCHEDULERS):
        if environ.get(variable):
            return checked(environ[variable], variable)
    return None


def file(cluster: str, mpi: str, what: str, environ: Mapping[str, str] = os.environ) -> Path:
    return root(environ) / cluster / mpi / what


def found(cluster: str, what: str, environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """By MPI."""
    return {each.parent.name: each for each in sorted((root(environ) / cluster).glob(f"*/{what}"))}


def policy_file(mpi: str | None) -> Path | None:
    """Of this cluster and that MPI, if it was tuned here."""
    cluster = name()
    return found(cluster, POLICY).get(mpi or "") if cluster else None


def machine_file(mpi: str | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Of OFFPATH_MACHINE, else of this cluster; where nothing says which that is, of the only one there is. With no
    `mpi` of the only one calibrated there."""
    if environ.get(MACHINE_VARIABLE):
        return Path(environ[MACHINE_VARIABLE])
    cluster = name(environ)
    if cluster is None:
        clusters = {each.parents[1].name for each in root(environ).glob(f"*/*/{MACHINE}")}
        cluster = clusters.pop() if len(clusters) == 1 else None
    files = found(cluster, MACHINE, environ) if cluster else {}
    if mpi is None and len(files) == 1:
        [mpi] = files
    return files.get(mpi or "")
