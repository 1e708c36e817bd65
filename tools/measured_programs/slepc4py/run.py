# SPDX-License-Identifier: BSD-3-Clause
"""The largest eigenvalues of a Laplacian, by Krylov-Schur."""

import sys

import slepc4py

slepc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402
from slepc4py import SLEPc  # noqa: E402

SIDE = 90
matrix = PETSc.Mat().createAIJ([SIDE * SIDE, SIDE * SIDE], nnz=5)
first, last = matrix.getOwnershipRange()
for row in range(first, last):
    x, y = row % SIDE, row // SIDE
    matrix[row, row] = 4.0
    for to_x, to_y in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)):
        if 0 <= to_x < SIDE and 0 <= to_y < SIDE:
            matrix[row, to_y * SIDE + to_x] = -1.0
matrix.assemble()
start = matrix.createVecRight()
low, high = start.getOwnershipRange()
start.setArray([1.0 + 0.5 * ((7 * each) % 11) for each in range(low, high)])
solver = SLEPc.EPS().create()
solver.setOperators(matrix)
solver.setProblemType(SLEPc.EPS.ProblemType.HEP)
solver.setDimensions(6)
solver.setTolerances(1e-9)
solver.setInitialSpace(start)
solver.solve()
values = [solver.getEigenvalue(each).real for each in range(min(6, solver.getConverged()))]
errors = [solver.computeError(each) for each in range(len(values))]
if PETSc.COMM_WORLD.rank == 0:
    for value in values:
        print(f"RESULT {value:.9f}")
    print("PASSED" if len(values) == 6 and max(errors) < 1e-8 else f"FAILED {errors}")
