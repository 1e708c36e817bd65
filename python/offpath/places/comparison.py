# SPDX-License-Identifier: BSD-3-Clause
"""Where a program runs with and without Offpath in turns, and what a result file says about that place."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from offpath.base import console, files, handover
from offpath.base.errors import UserError
from offpath.base.paths import paths, source_root
from offpath.base.processes import Completed
from offpath.base.sizes import rate_text
from offpath.base.version import __version__
from offpath.lab import Lab
from offpath.launch import local, mpis, policy_table

HOST, DPU = "host", "dpu"
CORES = "cores"  # where the service runs unless it is said
BOTH = "both"
RUN_TIMEOUT_S = 300.0


class Place(Protocol):
    """Two of them: a lab, and this machine's loopback."""

    def run(self, mpi: str, argv: Sequence[str], offload: bool, env: Mapping[str, str]) -> Completed: ...

    @property
    def meta(self) -> dict: ...


@dataclass
class LabPlace:
    lab: Lab
    ppn: int
    timeout_s: float = RUN_TIMEOUT_S

    def run(self, mpi: str, argv: Sequence[str], offload: bool, env: Mapping[str, str]) -> Completed:
        return self.lab.mpirun(mpi, self.ppn, argv, offload, env, self.timeout_s)

    @property
    def meta(self) -> dict:
        plan = self.lab.plan
        return {
            "place": "lab",
            "hardware": "emulated",
            "nodes": plan.node_count,
            "ppn": self.ppn,
            "cores": [list(cores) for cores in plan.node_cores],
            "rate": rate_text(plan.rate_bits_per_s),
            "rate_bits_per_s": plan.rate_bits_per_s,
            "mtu_bytes": plan.mtu_bytes,
            "dpu_slowdown": plan.dpu_slowdown,
        }


@dataclass
class LoopbackPlace:
    ranks: int
    timeout_s: float = RUN_TIMEOUT_S

    def run(self, mpi: str, argv: Sequence[str], offload: bool, env: Mapping[str, str]) -> Completed:
        return local.local_mpirun(mpi, self.ranks, argv, offload, env, self.timeout_s, pin=True)

    @property
    def meta(self) -> dict:
        return {
            "place": "loopback",
            "hardware": "real, one machine, software DPU",
            "nodes": 1,
            "ppn": self.ranks,
            "cores": [local.available_cores()],
            "rate": None,
            "rate_bits_per_s": None,
        }


def lab_is_possible() -> bool:
    return os.geteuid() == 0


def check(loopback: bool) -> None:
    """Raises UserError where place() would, before anything is announced."""
    if not loopback and not lab_is_possible():
        raise UserError("The lab needs root (loopback has no link to hide). Be root, or give --loopback.")


@contextlib.contextmanager
def place(nodes: int, ppn: int, rate: str, loopback: bool, latency: str = "0") -> Iterator[Place]:
    """A lab that is gone afterwards, which needs root; loopback when asked for, and then that is said."""
    check(loopback)
    if loopback:
        console.note("running on plain loopback, not in a lab: no link whose time could be hidden.")
        yield LoopbackPlace(nodes * ppn)
        return
    with Lab(nodes=nodes, rate=rate, latency=latency) as lab:
        yield LabPlace(lab, ppn)


def chosen_mpis(choice: str) -> list[str]:
    """openmpi, mpich or both, as a list; of both those that are installed and were built for, which is said. Raises
    UserError for another word or an MPI that is not installed."""
    if choice not in (mpis.OPENMPI, mpis.MPICH, BOTH):
        raise UserError(f"'{choice}' is not an MPI known here. Give openmpi, mpich or both.")
    if choice != BOTH:
        mpis.launcher(choice)
        return [choice]
    both = (mpis.OPENMPI, mpis.MPICH)
    installed = {each.kind for each in mpis.installed()}
    if not installed:
        raise UserError("Neither Open MPI nor MPICH is installed (nothing can be compared). Run: make setup")
    # Where nothing is built, whoever needs it says so.
    built = [kind for kind in both if paths().backend_library(kind).exists()] or both
    kinds = [kind for kind in both if kind in installed and kind in built]
    for kind in both:
        if kind not in kinds:
            console.note(f"{mpis.TITLES[kind]} is left out: it is not installed, or not built for (make build does)")
    return kinds


@dataclass(frozen=True)
class Launch:
    """One start of a program that writes --json. It may deliver its results and die afterwards."""

    output: dict | None
    stats: list[dict]
    problem: str | None  # one line for the user


def launch_for_json(where: Place, mpi: str, argv: Sequence[str], offload: bool, env: Mapping[str, str]) -> Launch:
    """Starts the program and reads what it wrote; never raises for what the program did."""
    with handover.folder() as folder:
        file = folder / "out.json"
        title = f"{Path(argv[0]).name} with {mpis.TITLES[mpi]} {'and Offpath' if offload else 'alone'}"
        try:
            result = where.run(mpi, [*argv, "--json", str(file)], offload, env)
        except subprocess.TimeoutExpired as error:
            problem = f"{title} did not end within {error.timeout:.0f} s (it hangs). Please report this."
            return Launch(files.json_if_any(file), [], problem)
        output, problem = files.json_if_any(file), None
        if result.returncode != 0 or output is None:
            own = f"({re.escape(Path(argv[0]).name)}|offpath):|verified: no"
            said = last_words(result.said, own)
            problem = f"{title} failed ({said}; exit {result.exit_status}). Try OFFPATH_LOG=debug to see more."
        elif result.stderr and result.stderr.strip():
            console.note(f"{title} said: {result.stderr.strip().splitlines()[0]}")
        return Launch(output, result.stats, problem)


def run_for_json(
    where: Place, mpi: str, argv: Sequence[str], offload: bool, env: Mapping[str, str]
) -> tuple[dict, list[dict]]:
    """What the program wrote for its --json, and the ranks' statistics. Raises UserError when it failed."""
    launch = launch_for_json(where, mpi, argv, offload, env)
    if launch.problem:
        raise UserError(launch.problem, 1)
    return launch.output, launch.stats


def last_words(said: str, own: str = "") -> str:
    """A program's own complaint if it has one, that is a line which begins with the pattern `own`: launchers say a lot
    after it."""
    lines = [line.strip() for line in said.splitlines() if line.strip(" -*")]
    return next((line for line in lines if re.match(own, line)), (lines or ["it said nothing"])[0])


def base_meta(kinds: Sequence[str]) -> dict:
    """What holds wherever the programs run."""
    versions = {each.kind: each.version for each in mpis.installed()}
    return {
        "offpath": __version__,
        "commit": _commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "processor": local.processor(),
        "cores_available": len(local.available_cores()),
        "mpi_versions": {kind: versions.get(kind, "unknown") for kind in kinds},
        "seed": None,  # nothing is random: every input is computed
    }


def policy_meta(policy: str | None) -> dict:
    """What overrides the measured rows in the offloaded runs of a comparison."""
    file = policy_table.tuned_file(os.environ.get(policy_table.FILE_VARIABLE))
    return {"policy": policy, "policy_file": str(file) if file else None}


def spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def _commit() -> str | None:
    root = source_root()
    if root is None:
        return None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        git = ["git", "-C", str(root), "-c", f"safe.directory={root}"]
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=10)
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, timeout=10)
        if head.returncode == 0:
            return head.stdout.strip() + ("-dirty" if changed.stdout.strip() else "")
    return None
