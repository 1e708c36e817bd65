#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills services of LAMMPS and CP2K at random moments, and compares what they compute with the MPI alone.

    .venv/bin/python tools/kill_programs.py --kills 10 --json build/killed-programs.json

As `offpath bench faults` does with our own programs. Everything is offloaded, blocking calls and short messages, too.
Packages: lammps and cp2k (tools/setup nightly).
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]

import measure_programs as programs  # noqa: E402
import typer  # noqa: E402
from offpath.base import console, handover  # noqa: E402
from offpath.base.errors import UserError  # noqa: E402
from offpath.bench.fault_kills import NOBODY_GIVES_UP, STATS_FILE, Watch, end_run  # noqa: E402
from offpath.bench.fault_verdicts import VERDICTS  # noqa: E402
from offpath.bench.kit import Benchmark, Table, options  # noqa: E402
from offpath.lab import Lab  # noqa: E402
from offpath.launch.mpis import OPENMPI  # noqa: E402
from offpath.places import comparison  # noqa: E402

ATTEMPTS = 20  # of a kill; each comes too late for a program that has ended
EVERYTHING = programs.ALL | {"OFFPATH_POLICY": "*:dpu,send:4K-inf:dpu,window:dpu"}
STEPS = {"lammps": 300, "cp2k": 3}

BENCHMARK = Benchmark([
    Table("Programs that others wrote, of which a service was killed", [
        ("program", "{program}"), ("nodes", "{nodes}"), ("ranks", "{ranks}"), ("kills", "{kills_count}"),
        *((verdict, f"{{{verdict}_count}}") for verdict in VERDICTS),
    ], note="right: the energies of the MPI alone."),
])  # fmt: skip


class Killed:
    """One program in a lab."""

    def __init__(self, name: str, lab: Lab, ppn: int):
        self.program, self.lab, self.ppn = programs.PROGRAMS[name], lab, ppn
        self.argv = [self.program.executable, *self.program.options, str(programs.FOLDER / f"{name}.in")]
        self.expected, _, said = self._run(False, None)
        if self.expected is None:
            raise UserError(f"{name} fails with the MPI alone: {said}", 1)
        found, watch, said = self._run(True, None)
        if found is None or not programs.same(found, self.expected) or watch.life_s is None:
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
                return self.verdict(found, self.expected, said)
        raise UserError(f"{ATTEMPTS} kills came too late. Is the machine busy?", 1)

    @staticmethod
    def verdict(found: list | None, expected: list, said: str) -> str:
        if found is None:
            return "error" if "Offpath" in said else "wrong"
        return "right" if programs.same(found, expected) else "wrong"

    def _run(self, offload: bool, kill: tuple[float, float] | None) -> tuple[list | None, Watch, str]:
        """Energies, if it ended well; its services; its last words."""
        with handover.folder() as folder:
            mark = {STATS_FILE: str(folder / "stats")}
            env = {"OMP_NUM_THREADS": "1", "OFFPATH_SERVICE_SHARE": "1"} | NOBODY_GIVES_UP | EVERYTHING | mark
            try:
                with Watch(mark, kill).running() as watch:
                    done = self.lab.mpirun(OPENMPI, self.ppn, self.argv, offload, env, programs.LIMIT_S)
            finally:
                end_run(mark)
        found = re.findall(self.program.energies, done.stdout or "", re.MULTILINE)
        said = f"{done.stdout or ''}{done.stderr or ''}"[-2000:]
        return found if done.returncode == 0 and found else None, watch, said


def kill_programs(
    names: Annotated[str, typer.Option("--programs", help="Which, separated by commas.")] = ",".join(STEPS),
    kills: Annotated[int, typer.Option(min=1, help="Of each program.")] = 5,
    nodes: Annotated[int, typer.Option(min=2, help="Of the lab.")] = 2,
    ppn: Annotated[int, typer.Option(min=1, help="Ranks on each.")] = 2,
    seed: Annotated[int, typer.Option(help="Of the moments.")] = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Kills services of programs of Debian's packages, and compares what they compute with the MPI alone."""
    programs.write_inputs(cells=12, molecules=8, steps=STEPS)
    rows = []
    with Lab(nodes=nodes, rate="1gbit") as lab:
        for name in (each for each in STEPS if each in names.split(",")):
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
    app = typer.Typer(add_completion=False)
    app.command()(kill_programs)
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except UserError as error:
        console.fail(str(error))
        sys.exit(error.exit_code)
