# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench krylov`: PETSc's conjugate gradients and ours, on the same ranks and on as many as there are cores."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, handover
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import parse_numbers
from offpath.bench import krylov_report, krylov_settings, matrix_market
from offpath.bench.kit import FAILED, Case, Site, options, turns
from offpath.bench.krylov_model import Model, measured_parts
from offpath.bench.krylov_report import BENCHMARK, own_name
from offpath.bench.krylov_settings import ACCURACY, ALL_CORES, PETSC, SAME
from offpath.lab import Lab
from offpath.launch.mpis import OPENMPI
from offpath.places import asked, comparison
from offpath.split.measuring import measured_machine

PRECONDITIONER = "jacobi"
SAME_HISTORY = 1e-4  # of the first residual: more is no rounding
REDUCTION_S = 5e-6  # of one sum, as `offpath split` assumes per doubling of ranks

app = commands.alone()


@app.command()
def krylov_command(
    grid: Annotated[int, typer.Option(min=4, help="The grid has so many points in each direction.")] = 64,
    matrix: Annotated[Optional[Path], typer.Option(help="Solve with this matrix (Matrix Market form) instead.")] = None,
    ranks: Annotated[int, typer.Option(min=1, help="Ranks (in a lab: per node); the other cores are services'.")] = 1,
    phi: Annotated[
        str, typer.Option(help="Shares of a product's rows to try: numbers or auto.")
    ] = "0,0.1,0.2,0.3,0.4,auto",
    leaders: Annotated[str, typer.Option(help="Ranks of a node that talk to the service, to try besides all.")] = "1",
    lab: asked.LabNodes = 0,
    rate: asked.Rate = "1gbit",
    latency: Annotated[str, typer.Option(help="What its packets take from node to node besides.")] = "0",
    iterations: Annotated[int, typer.Option(min=1, help="Of each solve.")] = 30,
    accuracy_iterations: Annotated[int, typer.Option(min=1, help="Of the solves that show the drift.")] = 200,
    runs: asked.Runs = 3,
    json_file: options.JsonFile = None,
) -> None:
    """Time per iteration of conjugate gradients on a 3-D Laplacian with a 27-point stencil, or on a given matrix.

    Against PETSc's cg and pipecg on the same ranks, which leave the service's cores idle, and on as many ranks as there
    are cores. *leaders*: few ranks talk to the service for the others. *preloaded*: PETSc's own pipecg with reductions
    by Offpath's MPI_Iallreduce, and ours beside them. *predicted* is made from the times of an iteration's parts,
    *roof* what the bandwidth alone allows (both for the Laplacian with Jacobi's preconditioner, one rank or one a core,
    and not in a lab, whose nodes share the cores). *drift*: how far the residual of the recurrence is from the true one
    after --accuracy-iterations.

    Examples:

        offpath bench krylov

        offpath bench krylov --grid 96 --phi 0,auto --json result.json

        offpath bench krylov --matrix bcsstk17.mtx --phi 0

        offpath bench krylov --lab 2 --latency 200us --grid 32 --phi 0 --leaders ''
    """
    options.check_files(json_file)
    if lab:
        options.require_lab("Several nodes are", rate)
    program = str(paths().bench_program("krylov", OPENMPI))
    counts = parse_numbers(leaders, "--leaders") if leaders else []
    chosen = (krylov_settings.in_a_lab(lab, ranks, phi.split(","), counts) if lab else
              krylov_settings.on_this_machine(ranks, phi.split(","), counts))  # fmt: skip
    predicts = not lab and matrix is None
    machine = measured_machine(REDUCTION_S) if predicts else None
    parts = measured_parts(grid) if predicts else None
    # Skip: ends after as many iterations, in all solvers with the iterate that the last norm is of.
    solve = ["-pc_type", PRECONDITIONER, "-ksp_norm_type", "unpreconditioned", "-ksp_convergence_test", "skip"]
    with _system(grid, matrix) as system:
        cases = []
        for each in chosen:
            once = each.name == ACCURACY
            length = ["-ksp_max_it", str(accuracy_iterations if once else iterations), "-rounds", "1" if once else "4"]
            launch = functools.partial(krylov_settings.launch, each, [program, *system, *solve, *length])
            cases.append(Case({"setting": each.name, "ranks": each.ranks}, launch, once))
        meta = turns.measure([Site([cases], functools.partial(_place, lab, rate, latency))], runs)
    if not cases[0].launches:
        raise UserError("PETSc's own solvers have failed, so there is nothing to compare with.", FAILED)
    solved = cases[0].launches[0]
    model = parts and Model(machine, parts, grid**3, solved["entries"] / solved["rows"])
    rows = _rows([row for each, case in zip(chosen, cases) for row in each.rows(case.launches)], model)
    place = {"place": "lab", "hardware": "emulated", "nodes": lab, "rate": rate, "latency": latency}
    meta |= comparison.base_meta([OPENMPI]) | (place if lab else {"place": "loopback"}) | {
        "grid": None if matrix else grid, "matrix": matrix.name if matrix else None, "rows": solved["rows"],
        "entries": solved["entries"], "preconditioner": PRECONDITIONER,
        "bytes_per_s": machine and {"one core": machine.host.bytes_per_s, "two cores": machine.shared_bytes_per_s},
        "parts": parts and dataclasses.asdict(parts),
        "best_phi": krylov_report.best_phi(rows),
    }  # fmt: skip
    BENCHMARK.deliver({"meta": meta, "rows": rows}, json_file)


@contextlib.contextmanager
def _system(grid: int, matrix: Path | None) -> Iterator[list[str]]:
    """What the program is told to solve."""
    if matrix is None:
        yield ["-grid", str(grid)]
        return
    with handover.folder() as folder:
        binary = folder / "matrix.petsc"
        matrix_market.convert(matrix, binary)
        yield ["-load", str(binary)]


def _place(nodes: int, rate: str, latency: str) -> contextlib.AbstractContextManager[Lab | None]:
    return Lab(nodes=nodes, rate=rate, latency=latency) if nodes else contextlib.nullcontext()


def _rows(rows: Sequence[dict], model: Model | None) -> list[dict]:
    """With what they are compared with: PETSc's own solvers, and the model."""
    petsc = {(row["setting"], row["solver"]): row for row in rows}
    for row in rows:
        if model:
            row |= model.fields(row["solver"], row["ranks"], row["setting"] == ALL_CORES)
        for solver in PETSC:
            row[f"over_{solver}"] = row["iteration_ns"] / petsc[SAME, solver]["iteration_ns"]
        reference = petsc[ACCURACY if row["setting"] == ACCURACY else SAME, own_name(row)]
        row["history_difference"] = _difference(row["residual_history"], reference["residual_history"])
        row["verified"] = row["history_difference"] <= SAME_HISTORY and row["drift"] <= SAME_HISTORY
    return list(rows)


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The largest difference in an iteration, of the first residual."""
    return max(abs(left - right) for left, right in zip(ours, theirs)) / theirs[0]
