# SPDX-License-Identifier: BSD-3-Clause
"""Poisson's equation on a grid of three dimensions, by pipelined conjugate gradients."""

import sys

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402

grid = PETSc.DMDA().create([36, 36, 36], stencil_width=1)
matrix = grid.createMatrix()
(x0, x1), (y0, y1), (z0, z1) = grid.getRanges()
row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for z in range(z0, z1):
    for y in range(y0, y1):
        for x in range(x0, x1):
            row.index = x, y, z
            near = ((x - 1, y, z), (x + 1, y, z), (x, y - 1, z), (x, y + 1, z), (x, y, z - 1), (x, y, z + 1))
            for at in ((x, y, z), *near):
                if min(at) >= 0 and max(at) < 36:
                    column.index = at
                    matrix.setValueStencil(row, column, 6.0 if at == (x, y, z) else -1.0)
matrix.assemble()
right, left = matrix.createVecs()
right.set(1.0)
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("pipecg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-8)
for _ in range(10):
    left.set(0.0)
    solver.solve(right, left)
residual = (matrix * left - right).norm() / right.norm()
norm = left.norm()
if PETSc.COMM_WORLD.rank == 0:
    print(f"RESULT {norm:.8e}")
    print("PASSED" if residual < 1e-7 else f"FAILED {residual}")
