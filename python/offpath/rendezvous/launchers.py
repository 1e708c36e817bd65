# SPDX-License-Identifier: BSD-3-Clause
"""Which rank of how many this process is, by what its launcher has put into the environment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Optional

from offpath.api.failures import ArgumentError
from offpath.base import proc
from offpath.rendezvous.hosts import first_host, tasks_of_node


@dataclass(frozen=True)
class Place:
    """local_size: ranks on this node; 0: not known. job: the same on all ranks, and of no other job on this node.
    address: where rank 0 can be met, if the launcher says it. secret: what only processes of the job know."""

    launcher: str
    rank: int
    size: int
    local_size: int
    job: str
    address: tuple[str, int] | None = None
    secret: bytes = b""

    @property
    def is_local(self) -> bool:
        return self.local_size == self.size


Environ = Mapping[str, str]


def find_place(environ: Environ = os.environ) -> Place:
    """A process that nobody launched with others is the only one. Raises ArgumentError for variables that make no
    sense."""
    for launcher in (_torchrun, _openmpi, _hydra, _slurm, _pmi):
        place = launcher(environ)
        if place is not None:
            if not 0 <= place.rank < place.size:
                raise ArgumentError(
                    f"{place.launcher} says that this is rank {place.rank} of {place.size} (there is none). Start it "
                    "anew."
                )
            return place
    return Place("nobody", 0, 1, 1, f"alone-{os.getpid()}")


def _torchrun(environ: Environ) -> Optional[Place]:
    if any(name not in environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")):
        return None
    port = _number(environ, "MASTER_PORT")
    more = [environ[name] for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT") if name in environ]
    # torch's own store listens on that port, or will.
    return Place(
        "torchrun", _number(environ, "RANK"), _number(environ, "WORLD_SIZE"), _number(environ, "LOCAL_WORLD_SIZE", 0),
        _job("RANK", environ["MASTER_ADDR"], str(port), *more), (environ["MASTER_ADDR"], port + 1),
        given_secret(environ),
    )  # fmt: skip


def _openmpi(environ: Environ) -> Optional[Place]:
    if "OMPI_COMM_WORLD_RANK" not in environ or "OMPI_COMM_WORLD_SIZE" not in environ:
        return None
    return Place(
        "Open MPI's mpirun", _number(environ, "OMPI_COMM_WORLD_RANK"), _number(environ, "OMPI_COMM_WORLD_SIZE"),
        _number(environ, "OMPI_COMM_WORLD_LOCAL_SIZE", 0),
        _job("OMPI_COMM_WORLD_RANK", environ.get("PMIX_NAMESPACE", environ.get("OMPI_MCA_ess_base_jobid", ""))),
        None, given_secret(environ),
    )  # fmt: skip


def _hydra(environ: Environ) -> Optional[Place]:
    return _pmi(environ) if "MPI_LOCALNRANKS" in environ else None


def _pmi(environ: Environ) -> Optional[Place]:
    if "PMI_RANK" not in environ or "PMI_SIZE" not in environ:
        return None
    return Place(
        "MPICH's mpiexec", _number(environ, "PMI_RANK"), _number(environ, "PMI_SIZE"),
        _number(environ, "MPI_LOCALNRANKS", 0), _job("PMI_RANK"), None, given_secret(environ),
    )  # fmt: skip


def _slurm(environ: Environ) -> Optional[Place]:
    # A batch script has a rank, too, but no step.
    if any(name not in environ for name in ("SLURM_PROCID", "SLURM_STEP_ID", "SLURM_JOB_ID")):
        return None
    size = _number(environ, "SLURM_STEP_NUM_TASKS", _number(environ, "SLURM_NTASKS", 1))
    step = f"{environ['SLURM_JOB_ID']}.{environ['SLURM_STEP_ID']}"
    local = tasks_of_node(environ.get("SLURM_STEP_TASKS_PER_NODE", ""), _number(environ, "SLURM_NODEID", 0))
    nodes = environ.get("SLURM_STEP_NODELIST", environ.get("SLURM_JOB_NODELIST", ""))
    port = 15000 + int.from_bytes(hashlib.sha256(step.encode()).digest()[:4], "big") % 15000
    return Place(
        "Slurm", _number(environ, "SLURM_PROCID"), size, local, step, (first_host(nodes), port) if nodes else None,
        given_secret(environ),
    )  # fmt: skip


def given_secret(environ: Environ) -> bytes:
    """What the user has given the job; else what Open MPI's mpirun draws for networks that want a key, which never
    travels but to its ranks."""
    return (environ.get("OFFPATH_JOB_SECRET") or environ.get("OMPI_MCA_orte_precondition_transports", "")).encode()


def _number(environ: Environ, name: str, otherwise: int | None = None) -> int:
    text = environ.get(name, "")
    if not text and otherwise is not None:
        return otherwise
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(
            f"{name}={text!r} is no number (it says who this process is). Start it by its launcher."
        ) from None


def _job(variable: str, *more: str) -> str:
    """Of a launcher without a name for its job: the process that has started the ranks, that is the nearest ancestor
    without `variable`."""
    words = "-".join(word for word in (*more, *_ancestor(variable)) if word)
    return hashlib.sha256(words.encode()).hexdigest()[:24]


def _ancestor(variable: str, environ_of: Callable[[int], bytes] | None = None) -> tuple[str, str]:
    process = os.getppid()
    while process > 1:
        try:
            environment = (environ_of or _environment)(process)
        except OSError:  # another user's: a launcher's
            break
        if not any(entry.startswith(variable.encode() + b"=") for entry in environment.split(b"\0")):
            break
        process = proc.parent(process)
    return str(process), proc.began(process)


def _environment(process: int) -> bytes:
    with open(f"/proc/{process}/environ", "rb") as file:
        return file.read()
