# SPDX-License-Identifier: BSD-3-Clause
"""Threads of the MPIs themselves that move data while the program computes: how to switch them on, what they hide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from offpath.launch.mpis import MPICH, OPENMPI

VARIABLES: Mapping[str, Mapping[str, str]] = {
    OPENMPI: {"OMPI_MCA_btl_tcp_progress_thread": "1"},  # of its TCP transport only
    MPICH: {"MPIR_CVAR_ASYNC_PROGRESS": "1"},
}
# As well as Offpath where both were measured (docs/performance/progress-threads.md).
HIDDEN: Mapping[str, tuple[str, ...]] = {OPENMPI: ("ialltoall", "iallgather", "ibcast")}


def hidden(mpi: str, kinds: Iterable[str]) -> list[str]:
    """Of these collectives those that the MPI's own thread is known to hide as well."""
    present = set(kinds)
    return [kind for kind in HIDDEN.get(mpi, ()) if kind in present]


def setting(mpi: str) -> str:
    return " ".join(f"{name}={value}" for name, value in VARIABLES[mpi].items())
