# SPDX-License-Identifier: BSD-3-Clause
"""The tables of `offpath bench krylov`."""

from collections.abc import Sequence

from rich.table import Column

from offpath.base import console
from offpath.base.tables import Table
from offpath.bench.krylov_settings import ACCURACY, OURS, PETSC, SAME


def show(rows: Sequence[dict]) -> None:
    timed = [row for row in rows if row["setting"] != ACCURACY]
    _show_times(timed)
    best = ", ".join(f"{solver} with {setting}" for solver, setting in best_phi(rows).items())
    console.out.print(f"Shortest of the phi: {best}")
    if "predicted_ns" in rows[0]:
        _show_model(timed)
    _show_accuracy([row for row in rows if row["setting"] == ACCURACY])


def best_phi(rows: Sequence[dict]) -> dict[str, str]:
    """The optimum of the sweep, by solver."""
    swept = [row for row in rows if row["setting"].startswith("phi ")]
    return {
        solver: min((row for row in swept if row["solver"] == solver), key=lambda row: row["iteration_ns"])["setting"]
        for solver in OURS
    }


def _show_times(rows: Sequence[dict]) -> None:
    table = _table("setting", "solver", "ranks", "ms/it.", "min", "max", "sums", "/cg", "/pipecg")
    reference = {row["solver"]: row["iteration_ns"] for row in rows if row["setting"] == SAME}
    for row in rows:
        times = [_ms(row[name]) for name in ("iteration_ns", "iteration_min_ns", "iteration_max_ns", "sum_ns")]
        ratios = [f"{row['iteration_ns'] / reference[name]:.2f}" for name in PETSC]
        table.add_row(row["setting"], row["solver"], str(row["ranks"]), *times, *ratios)
    console.out.print(table)
    console.out.print(
        "ms/it.: per iteration; sums: of these in posting and waiting for sums over the ranks (ours: for the service), "
        "not hidden. /cg, /pipecg: of PETSc's time on the same ranks"
    )


def _show_model(rows: Sequence[dict]) -> None:
    table = _table("setting", "solver", "bytes/row", "roof ms", "predicted", "measured", "error %", "cpu ms")
    for row in rows:
        if row["setting"].startswith("phi ") and row["setting"] != "phi 0":
            continue  # the model has no shares of a product
        times = [_ms(row[name]) for name in ("roofline_ns", "predicted_ns", "iteration_ns")]
        error = f"{100 * (row['predicted_ns'] / row['iteration_ns'] - 1):+.0f}"
        cells = [f"{row['bytes_per_row']:.0f}", *times, error, _ms(row["host_cpu_ns"])]
        table.add_row(row["setting"], row["solver"], *cells)
    console.out.print(table)
    console.out.print(
        "roof: bytes of an iteration by the measured memory bandwidth; predicted: from the parts' times, processor "
        "time as cpu, the first rank's, is (far from measured: something else ran, or the rank waited)"
    )


def _show_accuracy(rows: Sequence[dict]) -> None:
    table = _table("solver", "iterations", "true residual", "drift", "history")
    for row in rows:
        numbers = [f"{row[name]:.1e}" for name in ("true_residual", "drift", "history_difference")]
        table.add_row(row["solver"], str(row["iterations"]), *numbers)
    console.out.print(table)
    console.out.print("drift: recurrence against true residual. history: residuals against PETSc's own solver's")


def _table(*names: str) -> Table:
    return Table(*(Column(name, no_wrap=True) for name in names))


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.2f}"
