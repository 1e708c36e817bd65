#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills services of programs of measured_programs at random moments, and compares what they compute with the MPI alone.

    .venv/bin/python tools/kill_programs.py --kills 10 --json build/killed-programs.json

As `offpath bench faults` does with our own programs. Everything is offloaded, blocking calls and short messages, too.
Packages: tools/setup nightly.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]

import foreign_programs as programs  # noqa: E402
import typer  # noqa: E402
from measure_programs import ALL  # noqa: E402
from offpath.base import handover  # noqa: E402
from offpath.base.errors import UserError  # noqa: E402
from offpath.bench.fault_kills import NOBODY_GIVES_UP, STATS_FILE, Watch, end_run  # noqa: E402
from offpath.bench.fault_verdicts import VERDICTS  # noqa: E402
from offpath.bench.kit import Benchmark, Table, options  # noqa: E402
from offpath.lab import Lab  # noqa: E402
from offpath.launch.mpis import OPENMPI  # noqa: E402
from offpath.places import comparison  # noqa: E402

ATTEMPTS = 20  # of a kill; each comes too late for a program that has ended
USUALLY = "lammps", "cp2k"

BENCHMARK = Benchmark([
    Table("Programs that others wrote, of which a service was killed", [
        ("program", "{program}"), ("nodes", "{nodes}"), ("ranks", "{ranks}"), ("kills", "{kills_count}"),
        *((verdict, f"{{{verdict}_count}}") for verdict in VERDICTS),
    ], note="right: the results of the MPI alone."),
])  # fmt: skip


class Killed:
    """One program in a lab."""

    def __init__(self, name: str, lab: Lab, ppn: int):
        self.program, self.lab, self.ppn = programs.PROGRAMS[name], lab, ppn
        self.program.prepared(OPENMPI)
        self.expected, _, said = self._run(False, None)
        if not self.expected:
            raise UserError(f"{name} fails with the MPI alone: {said}", 1)
        found, watch, said = self._run(True, None)
        if not self._right(found) or watch.life_s is None:
            raise UserError(f"{name} is not right without a kill: {said}", 1)
        self.life_s = watch.life_s

    def kill(self, moments: random.Random) -> str:
        """A verdict, as of `offpath bench faults`."""
        for _ in range(ATTEMPTS):
            try:
                found, watch, said = self._run(True, (moments.uniform(0, self.life_s), moments.random()))
            except subprocess.TimeoutExpired:
                return "stood"
            if watch.killed:
                return self.verdict(found, self._right(found), said)
        raise UserError(f"{ATTEMPTS} kills came too late. Is the machine busy?", 1)

    @staticmethod
    def verdict(found: list, right: bool, said: str) -> str:
        if not found:
            return "error" if "Offpath" in said else "wrong"
        return "right" if right else "wrong"

    def _right(self, found: list) -> bool:
        return programs.same(found, self.expected, self.program.tolerance)

    def _run(self, offload: bool, kill: tuple[float, float] | None) -> tuple[list, Watch, str]:
        """Results, if it ended well; its services; its last words."""
        with handover.folder() as folder:
            mark = {STATS_FILE: str(folder / "stats")}
            env = {"OFFPATH_SERVICE_SHARE": "1"} | NOBODY_GIVES_UP | ALL | mark
            try:
                with Watch(mark, kill).running() as watch:
                    ran = programs.run(self.program, OPENMPI, self.ppn, offload, env, self.lab)
            finally:
                end_run(mark)
        return ran.results, watch, ran.words


def kill_programs(
    names: Annotated[str, typer.Option("--programs", help="Which, separated by commas.")] = ",".join(USUALLY),
    kills: Annotated[int, typer.Option(min=1, help="Of each program.")] = 5,
    nodes: programs.Nodes = 2,
    ppn: programs.RanksOnEach = 2,
    seed: Annotated[int, typer.Option(help="Of the moments.")] = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Kills services of programs, and compares what they compute with the MPI alone."""
    chosen = options.names(names, programs.PROGRAMS, "a program")
    programs.FOLDER.mkdir(parents=True, exist_ok=True)
    rows = []
    with Lab(nodes=nodes, rate="1gbit") as lab:
        for name in chosen:
            program, moments = Killed(name, lab, ppn), random.Random(f"{seed} {name}")
            counts = Counter(program.kill(moments) for _ in range(kills))
            rows.append(
                {"program": name, "nodes": nodes, "ranks": nodes * ppn, "kills_count": kills}
                | {f"{verdict}_count": counts[verdict] for verdict in VERDICTS}
                | {"verified": not counts["wrong"] and not counts["stood"]}
            )
    meta = comparison.base_meta([OPENMPI]) | {"seed": seed}
    BENCHMARK.deliver({"meta": meta, "rows": rows}, json_file)


if __name__ == "__main__":
    programs.as_program(kill_programs)
