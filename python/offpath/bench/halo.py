# SPDX-License-Identifier: BSD-3-Clause
"""The halo exchange of `offpath bench openmp`: a step against its parts and against the host alone.

Equal cores for both: the same two, of which the device has the second."""

import os
from collections.abc import Mapping, Sequence

from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.bench.kit import FAILED, programs
from offpath.launch import mpis
from offpath.launch.local import native_environment

# Inner and outer parts of the same size, so that neither hides what the other costs; some 20 ms each, like the overlap.
SIZES = ("--rows", "512", "--outer", "128", "--columns", "1024", "--work", "64")


def rows(steps: int) -> list[dict]:
    """One launch each: with the outer part on the device and all of it on the host."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise UserError("halo needs two cores (the device takes one of them). Give --halo 0.")
    device = {
        "LD_PRELOAD": str(built(paths().preload_library)),
        "LD_LIBRARY_PATH": str(paths().lib),
        "OFFPATH_DEVICES": "local",
        "OFFPATH_SERVICE_CORES": str(cores[1]),
        "OMP_TARGET_OFFLOAD": "mandatory",
        "KMP_BLOCKTIME": "0",  # no thread of the host's spins where another computes
    }
    host = {"OMP_TARGET_OFFLOAD": "disabled", "OMP_NUM_THREADS": "2", "KMP_BLOCKTIME": "0"}
    both = _launch(steps, [], cores, device)
    alone = _launch(steps, ["--host"], cores, host)
    longer = max(both["inner_ms"], both["outer_ms"])
    return [
        {"name": "halo: step", "unit": "ms", "value": both["step_ms"]},
        {"name": "halo: step on the host alone", "unit": "ms", "value": alone["step_ms"]},
        {"name": "halo: step / longer part", "unit": "1", "value": both["step_ms"] / longer},
        {"name": "halo: step / host alone", "unit": "1", "value": both["step_ms"] / alone["step_ms"]},
    ]


def _launch(steps: int, options: Sequence[str], cores: Sequence[int], settings: Mapping[str, str]) -> dict[str, float]:
    installed = mpis.installed()
    if not installed:
        raise UserError("No MPI is installed (halo is an MPI program). Run: make setup, or give --halo 0.")
    mpi = installed[0].kind
    argv = ["taskset", "-c", ",".join(map(str, cores)), str(paths().app("halo", mpi))]
    argv += [*SIZES, "--steps", str(steps), *options]
    command = [installed[0].launcher, "-np", "1", *(["--bind-to", "none"] if mpi == mpis.OPENMPI else [])]
    command += ["env", *(f"{name}={value}" for name, value in settings.items()), *argv]
    said = programs.output(command, native_environment(mpi, crowded=False)).decode()
    if "verified: yes" not in said:
        raise UserError(f"halo failed: {programs.last_words('halo', said)}", FAILED)
    words = [line.split() for line in said.splitlines()]
    return {line[0]: float(line[1]) for line in words if len(line) == 2 and line[0].endswith("_ms")}
