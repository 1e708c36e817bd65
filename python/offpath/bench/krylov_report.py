# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath bench krylov` says of its rows: tables and goals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from offpath.bench.kit import Benchmark, Line, Table
from offpath.bench.krylov_settings import ACCURACY, ALL_CORES, OURS, SAME


def best_phi(rows: Sequence[dict]) -> dict[str, str]:
    """The optimum of the sweep, by solver."""
    swept = [row for row in rows if row["setting"].startswith("phi ")]
    times = {solver: {row["iteration_ns"]: row["setting"] for row in swept if row["solver"] == solver}
             for solver in OURS}  # fmt: skip
    return {solver: found[min(found)] for solver, found in times.items() if found}


def own_name(row: dict) -> str:
    """Of PETSc's solver that ours is compared with."""
    return row["solver"].removeprefix("offpath_")


def _over(setting: str) -> Callable[[list[dict]], list[float]]:
    """Ours with the best phi against PETSc's solver of that name. `rows`: of one."""

    def ratios(rows: list[dict]) -> list[float]:
        swept = [row["iteration_ns"] for row in rows if row["setting"].startswith("phi ")]
        theirs = [row["iteration_ns"] for row in rows if row["setting"] == setting and row["solver"] == own_name(row)]
        return [min(swept) / theirs[0]] if swept and theirs else []

    return ratios


def _timed(row: dict) -> bool:
    return row["setting"] != ACCURACY


def _modelled(row: dict) -> bool:
    """The model has no shares of a product."""
    shares = row["setting"].startswith("phi ") and row["setting"] != "phi 0"
    return _timed(row) and "predicted_ns" in row and not shares


def _best(result: dict) -> str:
    found = best_phi(result["rows"]).items()
    return f"Shortest of the phi: {', '.join(f'{solver} with {setting}' for solver, setting in found)}"


BENCHMARK = Benchmark(
    [
        Table("Time of an iteration", [
            ("setting", "{setting}"), ("solver", "{solver}"), ("ranks", "{ranks}"), ("ms/it.", "{iteration_ns:ms}"),
            ("min", "{iteration_min_ns:ms}"), ("max", "{iteration_max_ns:ms}"), ("sums", "{sum_ns:ms}"),
            ("/cg", "{over_cg:.2f}"), ("/pipecg", "{over_pipecg:.2f}"),
        ], keys=2, where=_timed, note=
            "ms/it.: per iteration; sums: of these in posting and waiting for sums over the ranks (ours: for the "
            "service), not hidden. /cg, /pipecg: of PETSc's time on the same ranks"),
        Line(_best),
        Table("What it should take", [
            ("setting", "{setting}"), ("solver", "{solver}"), ("bytes/row", "{bytes_per_row:.0f}"),
            ("roof ms", "{roofline_ns:ms}"), ("predicted", "{predicted_ns:ms}"), ("measured", "{iteration_ns:ms}"),
            ("error", lambda row: f"{row['predicted_ns'] / row['iteration_ns'] - 1:+.0%}"),
            ("cpu ms", "{host_cpu_ns:ms}"),
        ], keys=2, where=_modelled, note=
            "roof: bytes of an iteration by the measured memory bandwidth; predicted: from the parts' times, processor "
            "time as cpu, the first rank's, is (far from measured: something else ran, or the rank waited)"),
        Table("How accurate it is", [
            ("solver", "{solver}"), ("iterations", "{iterations}"), ("true residual", "{true_residual:.1e}"),
            ("drift", "{drift:.1e}"), ("history", "{history_difference:.1e}"),
        ], where=lambda row: not _timed(row), note=
            "drift: recurrence against true residual. history: residuals against PETSc's own solver's"),
    ],
    {"krylov_same_ranks_ratio": _over(SAME), "krylov_all_cores_ratio": _over(ALL_CORES)},
    subject=own_name,
)  # fmt: skip
