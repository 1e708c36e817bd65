# SPDX-License-Identifier: BSD-3-Clause
"""How long an iteration of the solvers of `offpath bench krylov` should take, from the times of its parts.

The parts are timed by the program krylov_parts for the same number of rows, alone and beside each other, so what the
caches hold, what two cores take from one memory, and what a product costs besides its bytes is in their times. Which
parts follow each other and which run at the same time is the model's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from offpath.base.paths import paths
from offpath.bench import krylov_settings
from offpath.launch.local import available_cores, local_mpirun
from offpath.launch.mpis import OPENMPI
from offpath.split import Comparison, Costs, Machine, compare, load, split_program
from offpath.split.prediction import Prediction

_VARIANTS = {"cg": "pcg", "pipecg": "pipecg", "offpath_cg": "pcg", "offpath_pipecg": "pipecg"}
_JACOBI_BYTES = 24  # bytes per row: the diagonal, and a vector in and out
# Of PETSc's solvers, and of the host's part of ours: updates, dot products and norms of an iteration
_VECTOR_WORK = {"cg": (3, 2, 1), "pipecg": (8, 2, 1), "offpath_cg": (2, 2, 1)}
_LIMIT_S = 300


@dataclass(frozen=True)
class Parts:
    """Seconds per row of the parts by name, and of a post."""

    s_per_row: Mapping[str, float]
    post_s: float

    def vector_work(self, solver: str, update: str = "update") -> float:
        """Per row. `update`: which of the times for an update; dot products change as updates do."""
        updates, dots, norms = _VECTOR_WORK[solver]
        slower = self.s_per_row[update] / self.s_per_row["update"]
        return slower * (
            updates * self.s_per_row["update"] + dots * self.s_per_row["dot"] + norms * self.s_per_row["norm"]
        )


def measured_parts(grid: int) -> Parts:
    """Takes some seconds; a grid with as many rows stands for a matrix from a file."""
    cores = available_cores()
    program = [str(paths().bench_program("krylov_parts", OPENMPI)), "-grid", str(grid), "-other_core", str(cores[-1])]
    result = local_mpirun(OPENMPI, 1, program, timeout=_LIMIT_S, pin=True)
    found = krylov_settings.measured(result, "the parts of an iteration could not be timed")
    return Parts(found["s_per_row"], found["post_s"])


@dataclass(frozen=True)
class Model:
    """`machine` as measured: a core alone, and two together. Jacobi's preconditioner; no other. One rank, or one on
    each of two cores."""

    machine: Machine
    parts: Parts
    rows: int
    nonzeros_per_row: float

    def fields(self, solver: str, ranks: int, all_cores: bool) -> dict[str, int | float]:
        """Predicted time, bytes and the roofline's time of one iteration of `ranks` ranks."""
        compared = self._compare(solver, ranks)
        ours = solver.startswith("offpath_")
        prediction = compared.split if ours else compared.all_cores if all_cores else _alone(solver, compared)
        row_bytes = sum(prediction.bytes_per_row.values())
        bandwidth = self._bandwidth(ours or all_cores or ranks > 1)
        return {
            "predicted_ns": round(1e9 * self._predicted_s(solver, ranks)),
            "bytes_per_row": row_bytes,
            "roofline_ns": round(1e9 * self.rows * row_bytes / bandwidth),
        }

    def _predicted_s(self, solver: str, ranks: int) -> float:
        if ranks > 1:
            return self._crowded_s(solver, ranks)
        part = self.parts.s_per_row
        if solver == "offpath_pipecg":  # the host's chain or the service's
            host = part["precondition"] + part["product_beside_pass"] + part["host_pass"]
            return self.rows * max(host, part["pass_beside_product"]) + self.parts.post_s
        post_s = self.parts.post_s if solver == "offpath_cg" else 0
        chain = part["precondition"] + part["product"] + self.parts.vector_work(solver)
        return self.rows * chain + post_s

    def _crowded_s(self, solver: str, ranks: int) -> float:
        """Every core has a rank; the service's part is done on them too."""
        part = self.parts.s_per_row
        slower = part["update_beside_update"] / part["update"]
        chain = part["product_beside_product"] + slower * part["precondition"]
        if solver == "offpath_pipecg":
            chain += part["host_pass"] + part["pass_beside_product"]
        else:
            chain += self.parts.vector_work(solver.removeprefix("offpath_"), "update_beside_update")
        post_s = self.parts.post_s if solver.startswith("offpath_") else 0
        return self.rows / ranks * chain + post_s + self.machine.reduction_s

    def _bandwidth(self, together: bool) -> float:
        return self.machine.shared_bytes_per_s if together else self.machine.host.bytes_per_s

    def _compare(self, solver: str, ranks: int) -> Comparison:
        oplist = load(_VARIANTS[solver])
        product_bytes = 12 * self.nonzeros_per_row + 20  # as split counts them
        jacobi = {
            name: replace(each, cost=_JACOBI_BYTES / product_bytes) if name == "B" else each
            for name, each in oplist.operators.items()
        }
        oplist = replace(oplist, operators=jacobi)
        costs = Costs(oplist, self.machine, max(1, self.rows // ranks), self.nonzeros_per_row)
        return compare(split_program(oplist, costs), costs)


def _alone(solver: str, compared: Comparison) -> Prediction:
    return compared.alone_blocking if solver == "cg" else compared.alone_overlapped
