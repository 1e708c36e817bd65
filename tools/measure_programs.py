#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times LAMMPS and CP2K of Debian's packages in a lab, without and with Offpath: programs that know nothing of it.

    .venv/bin/python tools/measure_programs.py --runs 4 --json build/programs.json

They communicate by short or blocking calls, so there is little to hide: what is looked for is what Offpath costs them.
Packages: lammps and cp2k (tools/setup nightly).
"""

from __future__ import annotations

import functools
import itertools
import re
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import typer  # noqa: E402
from offpath.base import console  # noqa: E402
from offpath.base.errors import UserError  # noqa: E402
from offpath.bench import machine_load  # noqa: E402
from offpath.bench.kit import Benchmark, Case, Site, Table, options, turns  # noqa: E402
from offpath.lab import Lab  # noqa: E402
from offpath.launch import stats  # noqa: E402
from offpath.launch.mpis import OPENMPI  # noqa: E402
from offpath.places import comparison  # noqa: E402

LIMIT_S = 300
FOLDER = ROOT / "build" / "measured-programs"
LENNARD_JONES = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {cells} 0 {cells} 0 {cells}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 50
run {steps}
"""
WATER = """&GLOBAL
  PROJECT water
  RUN_TYPE ENERGY
&END GLOBAL
&FORCE_EVAL
  &DFT
    BASIS_SET_FILE_NAME BASIS_MOLOPT
    POTENTIAL_FILE_NAME GTH_POTENTIALS
    &MGRID
      CUTOFF 280
    &END MGRID
    &SCF
      MAX_SCF {steps}
      SCF_GUESS ATOMIC
      &PRINT
        &RESTART OFF
        &END RESTART
      &END PRINT
    &END SCF
    &XC
      &XC_FUNCTIONAL PBE
      &END XC_FUNCTIONAL
    &END XC
  &END DFT
  &SUBSYS
    &CELL
      ABC 12.4 6.2 6.2
    &END CELL
    &COORD
{atoms}
    &END COORD
    &KIND O
      BASIS_SET DZVP-MOLOPT-SR-GTH
      POTENTIAL GTH-PBE-q6
    &END KIND
    &KIND H
      BASIS_SET DZVP-MOLOPT-SR-GTH
      POTENTIAL GTH-PBE-q1
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
"""


def water(molecules: int) -> str:
    """On a grid, each turned a little differently from its neighbour."""
    lines = []
    for index, (x, y, z) in enumerate(itertools.islice(itertools.product(range(4), range(2), range(2)), molecules)):
        at = [3.1 * each + 0.6 for each in (x, y, z)]
        sign = 1 if index % 2 else -1
        for atom, (dx, dy, dz) in (("O", (0, 0, 0)), ("H", (0.757, 0.586 * sign, 0)), ("H", (-0.757, 0.586 * sign, 0))):
            lines.append(f"      {atom} {at[0] + dx:.4f} {at[1] + dy:.4f} {at[2] + dz:.4f}")
    return "\n".join(lines)


def write_inputs(cells: int, molecules: int, steps: Mapping[str, int | str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "lammps.in").write_text(LENNARD_JONES.format(cells=cells, steps=steps["lammps"]))
    (FOLDER / "cp2k.in").write_text(WATER.format(steps=steps["cp2k"], atoms=water(molecules)))


@dataclass(frozen=True)
class Program:
    """What is started with its input, and where it says its seconds and its energies."""

    executable: str
    options: tuple[str, ...]
    text: str
    seconds: str
    energies: str


PROGRAMS = {
    "lammps": Program("lmp", ("-log", "none", "-in"), LENNARD_JONES, r"^Loop time of ([\d.]+)",
                      r"^ +(?:\d+) +[-\d.]+ +([-\d.]+) +[-\d.]+ +([-\d.]+) +[-\d.]+ *$"),
    "cp2k": Program("cp2k.psmp", ("-i",), WATER, r"^ CP2K +1 +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)",
                    r"ENERGY\| Total FORCE_EVAL .*?(-[\d.]+)$"),
}  # fmt: skip


@dataclass
class Setting:
    name: str
    offload: bool
    env: Mapping[str, str] = field(default_factory=dict)


ALL = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_MPI_BLOCKING": "all"}
SETTINGS = (
    Setting("MPI alone", False), Setting("default policy", True),
    Setting("`send:64K-inf:dpu`", True, {"OFFPATH_POLICY": "send:64K-inf:dpu"}),
    Setting("`*:dpu`, OFFPATH_MPI_BLOCKING=all", True, ALL),
    Setting("the same, OFFPATH_MAPPED=on", True, ALL | {"OFFPATH_MAPPED": "on"}),
)  # fmt: skip


def launch(name: str, setting: Setting, lab: Lab) -> dict:
    program = PROGRAMS[name]
    env = {"OMP_NUM_THREADS": "1", "OFFPATH_SERVICE_SHARE": "1"} | setting.env
    argv = [program.executable, *program.options, str(FOLDER / f"{name}.in")]
    done = lab.mpirun(OPENMPI, 1, argv, setting.offload, env, LIMIT_S)
    seconds = re.findall(program.seconds, done.stdout or "", re.MULTILINE)
    energies = re.findall(program.energies, done.stdout or "", re.MULTILINE)
    if done.returncode != 0 or not seconds or not energies:
        said = ((done.stderr or "") + (done.stdout or "")).strip()[-400:]
        raise UserError(f"{name} failed with '{setting.name}': {said or 'it said nothing'}", 1)
    return {"seconds": float(seconds[-1]), "energies": energies, "offloaded": stats.offloaded_count(done.stats)}


def same(ours: list, theirs: list) -> bool:
    """Sums of real numbers may be bracketed in another way; in what is shown of them hardly ever."""
    numbers = [[float(each) for line in found for each in ([line] if isinstance(line, str) else line)]
               for found in (ours, theirs)]  # fmt: skip
    pairs = list(zip(*numbers))
    return len(set(map(len, numbers))) == 1 and all(abs(a - b) <= 1e-8 * abs(b) for a, b in pairs)


def row(name: str, setting: Setting, found: list[dict], alone: list[dict]) -> dict:
    seconds = [run["seconds"] for run in found]
    return {
        "program": name, "setting": setting.name, "seconds": statistics.median(seconds), "least_s": min(seconds),
        "most_s": max(seconds), "over_alone": statistics.median(seconds) / statistics.median(
            run["seconds"] for run in alone),
        "offloaded_count": found[0]["offloaded"], "energies": found[-1]["energies"], "runs": len(found),
        "verified": all(same(run["energies"], alone[0]["energies"]) for run in found),
    }  # fmt: skip


BENCHMARK = Benchmark([
    Table("Programs that others wrote", [
        ("program", "{program}"), ("setting", "{setting}"), ("seconds", "{seconds:.3f}"), ("least", "{least_s:.3f}"),
        ("most", "{most_s:.3f}"), ("of alone", "{over_alone:.3f}"), ("offloaded", "{offloaded_count}"),
    ], keys=2),
])  # fmt: skip


def measure(
    programs: Annotated[str, typer.Option(help="Which, separated by commas.")] = ",".join(PROGRAMS),
    nodes: Annotated[int, typer.Option(min=2, help="Of the lab, a rank on each.")] = 2,
    rate: Annotated[str, typer.Option(help="Rate of the lab's links.")] = "1gbit",
    runs: Annotated[int, typer.Option(min=1, help="Launches of each, in turns.")] = 4,
    steps: Annotated[str, typer.Option(help="Of LAMMPS and of CP2K's SCF.")] = "150,6",
    json_file: options.JsonFile = None,
) -> None:
    """Times programs of Debian's packages in a lab, without and with Offpath, in turns; their energies must be the
    same."""
    chosen = [name for name in PROGRAMS if name in programs.split(",")]
    of_lammps, of_cp2k = steps.split(",")
    write_inputs(cells=20, molecules=16, steps={"lammps": of_lammps, "cp2k": of_cp2k})
    rounds = [
        [Case({"program": name, "setting": each.name}, functools.partial(launch, name, each)) for each in SETTINGS]
        for name in chosen
    ]  # fmt: skip
    meta = comparison.base_meta([OPENMPI]) | turns.measure([Site(rounds, lambda: Lab(nodes=nodes, rate=rate))], runs)
    meta |= {"nodes": nodes, "ppn": 1, "rate": rate, "steps": steps}
    rows = [
        row(name, setting, case.launches, cases[0].launches)
        for name, cases in zip(chosen, rounds) for setting, case in zip(SETTINGS, cases)
        if case.launches and cases[0].launches
    ]  # fmt: skip
    BENCHMARK.deliver({"meta": meta, "rows": rows}, json_file)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False)
    app.command()(machine_load.watched(measure))
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except UserError as error:
        console.fail(str(error))
        sys.exit(error.exit_code)
