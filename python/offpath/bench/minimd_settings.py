# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which `offpath bench minimd` runs molecular dynamics, and what their launches come to."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench.kit import Case
from offpath.launch.local import available_cores
from offpath.places import comparison
from offpath.places.comparison import Place

HOST, ALL_CORES, RELAXED, OFF_PATH, HYBRID = "host", "all cores", "relaxed", "offpath", "hybrid"
BESIDE = (OFF_PATH, HYBRID)
OPENMP, TASKS = "openmp", "tasks"  # how the other side is reached; each a program
LEAST_WARM_UP = 10


@dataclass(frozen=True)
class System:
    """What is simulated."""

    cells: int
    every: int
    skin: float
    guard: bool

    def arguments(self, steps: int) -> list[str]:
        """As many timed steps as are whole periods, after whole periods of warming up."""
        warm_up = self.every * -(-LEAST_WARM_UP // self.every)
        last = warm_up + self.every * -(-steps // self.every)
        return [
            "--cells", str(self.cells), "--every", str(self.every), "--skin", f"{self.skin:g}", "--guard",
            "on" if self.guard else "off", "--warm-up", str(warm_up), "--steps", str(last), "--thermo", str(last),
        ]  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """How."""

    system: System
    variant: str
    ranks: int
    side: str = OPENMP
    slower: int = 1
    threads: int = 1
    env: tuple[tuple[str, str], ...] = ()

    @property
    def arguments(self) -> list[str]:
        schedule = HOST if self.variant == ALL_CORES else self.variant
        dpu = ["--dpu-repeats", str(self.slower), "--dpu-threads", str(self.threads)] if self.variant in BESIDE else []
        return ["--schedule", schedule, *dpu]

    @property
    def labels(self) -> dict:
        return {
            "every": self.system.every, "skin": self.system.skin, "guard": self.system.guard, "variant": self.variant,
            "ranks": self.ranks, "side": self.side if self.variant in BESIDE else None, "dpu_slower": self.slower,
            "dpu_threads": self.threads,
        }  # fmt: skip


def typical(launches: Sequence[dict]) -> dict[str, Any]:
    """The launch with the median time (the lower one of two in the middle)."""
    return sorted(launches, key=lambda run: run["seconds"])[(len(launches) - 1) // 2]


def row(case: Case) -> dict[str, Any]:
    times = [1e9 * run["seconds"] / run["timed_steps"] for run in case.launches]
    run = typical(case.launches)
    return {
        "atoms": run["atoms"], **case.labels,
        "step_ns": round(statistics.median(times)), "step_min_ns": round(min(times)), "step_max_ns": round(max(times)),
        **{name: run[name] for name in ("rebuilds", "relaxed", "guard_hits", "shared_steps", "share", "drift")},
        "shipped_bytes": round(run["shipped_bytes"]), "phases_s": run["phases_s"], "runs": len(times),
        "verified": all(each["verified"] for each in case.launches),
        "other_side_s": run["other_side_s"],
    }  # fmt: skip


def of_system(
    system: System, ranks: int, sides: Sequence[str], slower: Sequence[int], threads: Sequence[int], nodes: int
) -> Iterator[Setting]:
    """`ranks` cores (in a lab: of each node) alone, all cores, and the schedules with a DPU on the other cores."""
    cores = available_cores()
    if not nodes and ranks >= len(cores):
        raise UserError(f"{ranks} ranks leave none of {len(cores)} cores to the DPU (it would slow them). Use fewer")
    beside = {"OFFPATH_DEVICES": "local", "OMP_TARGET_OFFLOAD": "mandatory", "KMP_BLOCKTIME": "0"}
    beside |= {"OFFPATH_SERVICE_SHARE": "1", "OFFPATH_POLICY": "none"}
    if not nodes:
        beside["OFFPATH_SERVICE_CORES"] = ",".join(map(str, cores[ranks:]))
    everyone = ranks * max(1, nodes)
    yield Setting(system, HOST, everyone)
    if not nodes:
        yield Setting(system, ALL_CORES, len(cores))
    yield Setting(system, RELAXED, everyone)
    for variant, side, factor, count in itertools.product(BESIDE, sides, slower, threads):
        yield Setting(system, variant, everyone, side, factor, count, tuple(beside.items()))


def case_of(setting: Setting, mpi: str, steps: int) -> Case:
    argv = [str(paths().app(f"minimd_{setting.side}", mpi)), *setting.system.arguments(steps), *setting.arguments]
    return Case(setting.labels, functools.partial(_launch, setting, mpi, argv))


def _launch(setting: Setting, mpi: str, argv: Sequence[str], where: Mapping[int, Place]) -> dict:
    """`where`: by how many ranks there are."""
    offload = setting.variant in BESIDE and setting.side == OPENMP
    return comparison.run_for_json(where[setting.ranks], mpi, argv, offload, dict(setting.env))[0]
