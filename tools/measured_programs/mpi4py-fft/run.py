# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of a grid of three dimensions, there and back."""

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

world = MPI.COMM_WORLD
transform = PFFT(world, [96, 96, 96], axes=(0, 1, 2), dtype=float, slab=True)
field = newDistArray(transform, False)
where = np.indices(field.shape).astype(float)
start = field.substart
field[:] = np.sin(where[0] + start[0]) * np.cos(2 * (where[1] + start[1])) + where[2] + start[2]
kept, error = field.copy(), 0.0
spectrum = newDistArray(transform, True)
for _ in range(10):
    spectrum = transform.forward(field, spectrum)
    field = transform.backward(spectrum, field)
error = world.allreduce(float(abs(field - kept).max()), MPI.MAX)
power = world.allreduce(float((abs(spectrum) ** 2).sum()))
if world.rank == 0:
    print(f"RESULT {power:.10e}")
    print("PASSED" if error < 1e-10 else f"FAILED {error}")
