# SPDX-License-Identifier: BSD-3-Clause
"""Starting MPI programs on this machine, without a lab."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath.base import handover, processes
from offpath.base.processes import Completed
from offpath.launch import injection, mpis, stats


def available_cores() -> list[int]:
    """The cores this process may use."""
    return sorted(os.sched_getaffinity(0))


def processor() -> str:
    """What the kernel calls it, or its architecture."""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text()
        if found := re.search(r"^(?:model name|Model|CPU part)\s*:\s*(.+)$", text, re.MULTILINE):
            return found[1].strip()
    return platform.machine()


def native_environment(mpi: str, crowded: bool) -> dict[str, str]:
    """Settings of the MPI itself that every comparison has on both sides."""
    chosen = {}
    if mpi in (mpis.OPENMPI, mpis.OPENSHMEM):
        if os.geteuid() == 0:
            chosen |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if crowded:
            chosen["OMPI_MCA_mpi_yield_when_idle"] = "1"
    return chosen


def own_sessions(mpi: str, folder: str | os.PathLike[str]) -> dict[str, str]:
    """By which an mpirun of Open MPI keeps its files apart from others', in that folder.

    All of a user's jobs on a node have one folder there, which the first one makes and the last one removes: a job that
    begins in that moment finds it half made or gone, and its mpirun waits for ever.
    """
    return {"OMPI_MCA_orte_tmpdir_base": os.fspath(folder)} if mpi in (mpis.OPENMPI, mpis.OPENSHMEM) else {}


def pinned(argv: Sequence[str], cores: Sequence[int]) -> list[str]:
    """`argv` so that rank i of a node runs on the i-th of `cores` (round robin), whichever MPI starts it."""
    rank = "${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}"  # Open MPI's name, MPICH's name
    script = f'core=$(echo "$0" | cut -d, -f$(({rank} % {len(cores)} + 1))); exec taskset -c "$core" "$@"'
    return ["sh", "-c", script, ",".join(map(str, cores)), *argv]


@dataclass(frozen=True)
class Prepared:
    """A job that has not been started: its command line, the environment of that, where its ranks leave statistics."""

    command: list[str]
    environ: dict[str, str]
    stats_file: str


@contextlib.contextmanager
def prepared(
    mpi: str,
    np: int,
    argv: Sequence[str],
    offload: bool = False,
    env: Mapping[str, str] | None = None,
    *,
    pin: bool = False,
    crowded: bool | None = None,
) -> Iterator[Prepared]:
    """What local_mpirun starts. `crowded`: ranks share cores; by default when those of this job outnumber them."""
    cores = available_cores()
    share = np >= len(cores) if crowded is None else crowded or np >= len(cores)
    crowded = np > len(cores) if crowded is None else crowded
    mpis.executable(argv[0])
    with handover.folder() as folder, stats.private_file(folder) as stats_file:
        options = injection.measured_run(env or {}, stats_file, share=share) if offload else None
        yields = True if crowded and mpi == mpis.MPICH else None
        chosen = injection.measured_variables(mpi, env or {}, options, yields)
        program = pinned(argv, cores) if pin else list(argv)
        command = [mpis.launcher(mpi), "-np", str(np)]
        if mpi in (mpis.OPENMPI, mpis.OPENSHMEM):
            command += ["--oversubscribe", "--bind-to", "none"]
        command, _ = injection.with_variables([*command, *program], chosen)
        environ = os.environ | native_environment(mpi, crowded) | own_sessions(mpi, folder)
        yield Prepared(command, environ, chosen.get("OFFPATH_STATS_FILE", stats_file))


def local_mpirun(
    mpi: str,
    np: int,
    argv: Sequence[str],
    offload: bool = False,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    *,
    pin: bool = False,
) -> Completed:
    """Runs `argv` with `np` ranks of `mpi` on this machine, with or without Offpath.

    `env` reaches every rank. `pin` puts rank i on core i (round robin). MPICH yields while it waits when ranks
    outnumber cores. The services share the ranks' cores when there are no others.
    Raises UserError for what the user can put right, subprocess.TimeoutExpired after `timeout` seconds.
    """
    with prepared(mpi, np, argv, offload, env, pin=pin) as job:
        result = processes.run(job.command, job.environ, timeout=timeout)
        result.stats = stats.read(job.stats_file)
    result.raise_if_interrupted()
    return result
