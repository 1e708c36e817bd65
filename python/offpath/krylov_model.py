# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath split` predicts for the solvers of `offpath bench krylov`, and what the memory's bandwidth allows."""

from dataclasses import dataclass, replace

from offpath.split import Comparison, Costs, Machine, compare, load, split_program
from offpath.split.prediction import Prediction

_VARIANTS = {"cg": "pcg", "pipecg": "pipecg", "offpath_cg": "pcg", "offpath_pipecg": "pipecg"}
_JACOBI_BYTES = 24  # bytes per row: the diagonal, and a vector in and out


@dataclass(frozen=True)
class Model:
    """`machine` as measured: a core alone, and two together. Jacobi's preconditioner; no other."""

    machine: Machine
    rows: int
    nonzeros_per_row: float

    def fields(self, solver: str, ranks: int, all_cores: bool) -> dict[str, int | float]:
        """Predicted time, bytes and the roofline's time of one iteration of `ranks` ranks."""
        compared = self._compare(solver, ranks)
        ours = solver.startswith("offpath_")
        prediction = compared.split if ours else compared.all_cores if all_cores else _alone(solver, compared)
        row_bytes = sum(prediction.bytes_per_row.values())
        bandwidth = self._bandwidth(ours or all_cores or ranks > 1)
        # Ranks draw from one memory: the model's rows are a rank's.
        predicted_s = max(prediction.total_s, self.rows * row_bytes / bandwidth)
        return {
            "predicted_ns": round(1e9 * predicted_s),
            "bytes_per_row": row_bytes,
            "roofline_ns": round(1e9 * self.rows * row_bytes / bandwidth),
        }

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
