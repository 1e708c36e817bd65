# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which `offpath bench minimd` runs molecular dynamics, and what their launches come to."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from offpath.base import handover
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.lab import Lab
from offpath.launch.local import available_cores, local_mpirun

HOST, ALL_CORES, RELAXED, OFF_PATH, HYBRID = "host", "all cores", "relaxed", "offpath", "hybrid"
BESIDE = (OFF_PATH, HYBRID)
OPENMP, TASKS = "openmp", "tasks"  # how the other side is reached; each a program
LIMIT_S = 300.0
LEAST_WARM_UP = 10


@dataclass(frozen=True)
class Case:
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


@dataclass
class Setting:
    case: Case
    variant: str
    ranks: int
    side: str = OPENMP
    slower: int = 1
    threads: int = 1
    env: dict[str, str] = field(default_factory=dict)
    launches: list[dict[str, Any]] = field(default_factory=list)

    @property
    def arguments(self) -> list[str]:
        schedule = HOST if self.variant == ALL_CORES else self.variant
        dpu = ["--dpu-repeats", str(self.slower), "--dpu-threads", str(self.threads)] if self.variant in BESIDE else []
        return ["--schedule", schedule, *dpu]

    def typical(self) -> dict[str, Any]:
        """The launch with the median time (the lower one of two in the middle)."""
        return sorted(self.launches, key=lambda run: run["seconds"])[(len(self.launches) - 1) // 2]

    def row(self) -> dict[str, Any]:
        times = [1e9 * run["seconds"] / run["timed_steps"] for run in self.launches]
        run = self.typical()
        return {
            "atoms": run["atoms"], "every": self.case.every, "skin": self.case.skin, "guard": self.case.guard,
            "variant": self.variant, "ranks": self.ranks,
            "side": self.side if self.variant in BESIDE else None,
            "dpu_slower": self.slower, "dpu_threads": self.threads,
            "step_ns": round(statistics.median(times)), "step_min_ns": round(min(times)),
            "step_max_ns": round(max(times)),
            **{name: run[name] for name in ("rebuilds", "relaxed", "guard_hits", "shared_steps", "share", "drift")},
            "shipped_bytes": round(run["shipped_bytes"]), "phases_s": run["phases_s"],
            "verified": all(each["verified"] for each in self.launches),
            "other_side_s": run["other_side_s"],
        }  # fmt: skip


def of_case(
    case: Case, ranks: int, sides: Sequence[str], slower: Sequence[int], threads: Sequence[int], nodes: int
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
    yield Setting(case, HOST, everyone)
    if not nodes:
        yield Setting(case, ALL_CORES, len(cores))
    yield Setting(case, RELAXED, everyone)
    for variant, side, factor, count in itertools.product(BESIDE, sides, slower, threads):
        yield Setting(case, variant, everyone, side, factor, count, beside)


def launch(setting: Setting, mpi: str, steps: int, lab: Lab | None) -> None:
    """Adds what the program measured. Raises UserError if it failed."""
    program = str(paths().app(f"minimd_{setting.side}", mpi))
    offload = setting.variant in BESIDE and setting.side == OPENMP
    with handover.folder() as folder:
        file = folder / "out.json"
        argv = [program, *setting.case.arguments(steps), *setting.arguments, "--json", str(file)]
        try:
            if lab is None:
                result = local_mpirun(mpi, setting.ranks, argv, offload, setting.env, LIMIT_S, pin=True)
            else:
                result = lab.mpirun(mpi, setting.ranks // lab.plan.node_count, argv, offload, setting.env, LIMIT_S)
        except subprocess.TimeoutExpired:
            raise UserError(f"minimd, {setting.variant}, did not end within {LIMIT_S:.0f} s (it hangs).", 1) from None
        if result.returncode != 0 or not os.path.exists(file):
            said = [line for line in (result.stderr or "").splitlines() if line.startswith(("minimd:", "offpath:"))]
            raise UserError(f"minimd failed with {setting.variant}: {(said or ['it said nothing'])[0]}", 1)
        setting.launches.append(json.loads(file.read_text()))
