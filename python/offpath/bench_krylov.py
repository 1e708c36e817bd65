# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench krylov`: PETSc's conjugate gradients and ours, on the same ranks and on as many as there are cores."""

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from offpath import comparison, console
from offpath.errors import UserError
from offpath.launch import available_cores, local_mpirun
from offpath.mpis import OPENMPI
from offpath.paths import paths

PETSC, OURS = ("cg", "pipecg"), ("offpath_cg", "offpath_pipecg")
LIMIT_S = 600


@dataclass
class Setting:
    """One way to solve: `solvers` in turns in one launch."""

    name: str
    ranks: int
    solvers: Sequence[str]
    arguments: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)
    launches: list[dict] = field(default_factory=list)

    def rows(self) -> Iterator[dict]:
        """Of each solver: the median of all rounds but the first of a launch, which prepares."""
        for index, solver in enumerate(self.solvers):
            found = [launch["solvers"][index] for launch in self.launches]
            times = [seconds for each in found for seconds in each["iteration_s"][1:]]
            yield {
                "setting": self.name,
                "solver": solver,
                "ranks": self.ranks,
                "iteration_ns": round(1e9 * statistics.median(times)),
                "iteration_min_ns": round(1e9 * min(times)),
                "iteration_max_ns": round(1e9 * max(times)),
                "iterations": found[0]["iterations"],
                "true_residual": found[0]["true_residual"],
                "residual_history": found[0]["residual_history"],
            }


def settings(ranks: int, cores: Sequence[int], phis: Sequence[str]) -> list[Setting]:
    """`ranks` cores alone; all cores; `ranks` cores with services on the others, for each phi."""
    service = {"OFFPATH_SERVICE_CORES": ",".join(map(str, cores[ranks:]))}
    plugin = ["-dll_append", str(paths().lib / "liboffpath_petsc.so")]
    chosen = [Setting("same ranks", ranks, PETSC), Setting("all cores", len(cores), PETSC)]
    for phi in phis:
        chosen.append(Setting(f"phi {phi}", ranks, OURS, [*plugin, "-ksp_offpath_phi", phi], service))
    return chosen


def app_command(
    grid: Annotated[int, typer.Option(min=4, help="The grid has so many points in each direction.")] = 64,
    ranks: Annotated[int, typer.Option(min=1, help="Ranks; the other cores are the service's.")] = 1,
    pc: Annotated[str, typer.Option(help="PETSc's name of the preconditioner.")] = "jacobi",
    phi: Annotated[
        str, typer.Option(help="Shares of a product's rows to try: numbers or auto.")
    ] = "0,0.1,0.2,0.3,0.4,auto",
    iterations: Annotated[int, typer.Option(min=1, help="Of each solve.")] = 30,
    runs: Annotated[int, typer.Option(min=1, help="Launches of each, in turns.")] = 3,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the results there.")] = None,
) -> None:
    """Time per iteration of conjugate gradients on a 3-D Laplacian with a 27-point stencil.

    Against PETSc's cg and pipecg on the same ranks, which leave the service's cores idle, and on as many ranks as there
    are cores.

    Examples:

        offpath bench krylov

        offpath bench krylov --grid 96 --phi 0,auto --json result.json
    """
    comparison.writable_file(json_file, "--json")
    cores = available_cores()
    if ranks >= len(cores):
        raise UserError(
            f"{ranks} ranks leave none of {len(cores)} cores to the service (it would slow them). Use fewer"
        )
    program = str(paths().bench_program("krylov", OPENMPI))
    chosen = settings(ranks, cores, phi.split(","))
    argv = ["-grid", str(grid), "-pc_type", pc, "-ksp_max_it", str(iterations), "-ksp_rtol", "1e-30", "-rounds", "4"]
    for _ in range(runs):
        for each in chosen:
            command = [program, *argv, "-solvers", ",".join(each.solvers), *each.arguments]
            result = local_mpirun(OPENMPI, each.ranks, command, env=each.env, timeout=LIMIT_S, pin=True)
            if result.returncode != 0:
                raise UserError(f"krylov failed with {each.name}: {result.stderr.strip()[-300:]}")
            each.launches.append(json.loads(result.stdout[result.stdout.index('{"rows"') :]))
    rows = [row for each in chosen for row in each.rows()]
    table = Table(
        *(
            Column(name, no_wrap=True)
            for name in ("setting", "solver", "ranks", "ms/it.", "min", "max", "/cg", "/pipecg")
        )
    )
    reference = {row["solver"]: row["iteration_ns"] for row in rows if row["setting"] == "same ranks"}
    for row in rows:
        times = [f"{row[name] / 1e6:.2f}" for name in ("iteration_ns", "iteration_min_ns", "iteration_max_ns")]
        ratios = [f"{row['iteration_ns'] / reference[name]:.2f}" for name in PETSC]
        table.add_row(row["setting"], row["solver"], str(row["ranks"]), *times, *ratios)
    console.out.print(table)
    console.out.print("ms/it.: per iteration. /cg, /pipecg: of PETSc's time on the same ranks")
    if json_file:
        meta = comparison.base_meta([OPENMPI]) | {"grid": grid, "preconditioner": pc, "emulated": True, "runs": runs}
        json_file.write_text(json.dumps({"meta": meta, "rows": rows}, indent=1))
