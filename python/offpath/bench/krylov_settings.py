# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which `offpath bench krylov` solves a system, and what their launches come to."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.processes import Completed
from offpath.bench.kit import FAILED
from offpath.lab import Lab
from offpath.launch import stats
from offpath.launch.local import available_cores, local_mpirun
from offpath.launch.mpis import OPENMPI

PETSC, OURS = ("cg", "pipecg"), ("offpath_cg", "offpath_pipecg")
SAME, ALL_CORES, ACCURACY = "same ranks", "all cores", "accuracy"
LIMIT_S = 600
PRELOAD_OFF = {"OFFPATH_ENABLE": "0"}


@dataclass(frozen=True)
class Setting:
    """One way to solve: `solvers` in turns in one launch."""

    name: str
    ranks: int
    solvers: Sequence[str]
    arguments: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    preload: bool = False  # PETSc's own reductions by us

    def rows(self, launches: Sequence[dict]) -> Iterator[dict]:
        """Of each solver: the median of all rounds but the first of a launch, which prepares, if there are more."""
        for index, solver in enumerate(self.solvers if launches else ()):
            found = [launch["solvers"][index] for launch in launches]
            times, sums, processor = (
                [seconds for each in found for seconds in each[name][1:] or each[name]]
                for name in ("iteration_s", "sum_s", "host_cpu_s")
            )
            history = found[0]["residual_history"]
            yield {
                "setting": self.name,
                "solver": solver,
                "ranks": self.ranks,
                "iteration_ns": round(1e9 * statistics.median(times)),
                "iteration_min_ns": round(1e9 * min(times)),
                "iteration_max_ns": round(1e9 * max(times)),
                "sum_ns": round(1e9 * statistics.median(sums)),
                "host_cpu_ns": round(1e9 * statistics.median(processor)),
                "iterations": found[0]["iterations"],
                "offloaded_count": sum(launch["offloaded_count"] for launch in launches),
                "true_residual": found[0]["true_residual"],
                # What the recurrence says less what is true, of the right-hand side's norm: the worst of all rounds.
                "drift": max(each["drift"] for each in found),
                "residual_history": history,
                # What is accurate is so in each launch: one is enough.
                **({} if self.name == ACCURACY else {"runs": len(launches)}),
            }


def plugin(*arguments: str) -> list[str]:
    return ["-dll_append", str(paths().lib / "liboffpath_petsc.so"), *arguments]


def on_this_machine(ranks: int, phis: Sequence[str], leaders: Sequence[int]) -> list[Setting]:
    """`ranks` cores alone; all cores; `ranks` cores with services on the others, for each phi and number of leaders."""
    cores = available_cores()
    if ranks >= len(cores):
        raise UserError(
            f"{ranks} ranks leave none of {len(cores)} cores to the service (it would slow them). Use fewer"
        )
    service = {"OFFPATH_SERVICE_CORES": ",".join(map(str, cores[ranks:]))}
    shared = {"OFFPATH_SERVICE_SHARE": "1", "OFFPATH_SERVICE_CORES": ",".join(map(str, cores))}
    everywhere = [Setting(ALL_CORES, len(cores), PETSC), Setting(ALL_CORES, len(cores), OURS, plugin(), shared)]
    return [Setting(SAME, ranks, PETSC), *everywhere, *_offloaded(ranks, phis, leaders, service)]


def in_a_lab(nodes: int, ranks: int, phis: Sequence[str], leaders: Sequence[int]) -> list[Setting]:
    """`ranks` per node, with and without the services; a link between the nodes makes reductions slow."""
    return [Setting(SAME, nodes * ranks, PETSC), *_offloaded(nodes * ranks, phis, leaders, PRELOAD_OFF)]


def _offloaded(ranks: int, phis: Sequence[str], leaders: Sequence[int], env: dict[str, str]) -> list[Setting]:
    preloaded = {name: value for name, value in env.items() if name not in PRELOAD_OFF}
    chosen = [Setting(f"phi {phi}", ranks, OURS, plugin("-ksp_offpath_phi", phi), env) for phi in phis]
    chosen += [
        Setting(f"leaders {count}", ranks, OURS, plugin("-ksp_offpath_leaders", str(count)), env) for count in leaders
    ]
    reductions = preloaded | {"OFFPATH_POLICY": "iallreduce:dpu"}
    chosen.append(Setting("preloaded", ranks, ("pipecg",), env=reductions, preload=True))
    chosen.append(Setting("preloaded too", ranks, OURS, plugin(), reductions, preload=True))
    chosen.append(Setting(ACCURACY, ranks, (*PETSC, *OURS), plugin(), env))
    return chosen


def launch(setting: Setting, argv: Sequence[str], lab: Lab | None) -> dict:
    """What the program measured. Raises UserError if it failed."""
    command = [*argv, "-solvers", ",".join(setting.solvers), *setting.arguments]
    if lab is None:
        result = local_mpirun(
            OPENMPI, setting.ranks, command, offload=setting.preload, env=setting.env, timeout=LIMIT_S, pin=True
        )
    else:
        # Without services only PETSc's own solvers run.
        offload = setting.preload or bool(setting.arguments)
        per_node = setting.ranks // lab.plan.node_count
        result = lab.mpirun(OPENMPI, per_node, command, offload, setting.env, LIMIT_S)
    of_mpi = [line for line in result.stats if line.get("mpi") != stats.PETSC]  # what the solvers post is not MPI's
    return measured(result, f"krylov failed with {setting.name}") | {"offloaded_count": stats.offloaded_count(of_mpi)}


def measured(result: Completed, failure: str) -> dict:
    """What a program of PETSc's has printed. Raises UserError where it failed."""
    if result.returncode != 0:
        raise UserError(f"{failure}: {result.stderr.strip()[-300:]}", FAILED)
    return json.loads(result.stdout[result.stdout.index('{"rows"') :])
