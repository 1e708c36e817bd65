# SPDX-License-Identifier: BSD-3-Clause
"""Ranks write their parts of data sets into one file, all at once, and read those of others back."""

import h5py
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
ROWS, COLUMNS, STEPS = 512, 1024, 20
wrong, total = 0, 0.0
for step in range(STEPS):
    with h5py.File("data.h5", "w", driver="mpio", comm=world) as file:
        field = file.create_dataset("field", (ROWS * world.size, COLUMNS), dtype="f8")
        mine = np.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS) + world.rank * 1e6 + step
        with field.collective:
            field[world.rank * ROWS : (world.rank + 1) * ROWS] = mine
        world.Barrier()
        other = (world.rank + 1) % world.size
        with field.collective:
            theirs = field[other * ROWS : (other + 1) * ROWS]
        expected = np.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS) + other * 1e6 + step
        wrong += int((theirs != expected).sum())
        total += world.allreduce(float(theirs[::64].sum()))
wrong = world.allreduce(wrong)
if world.rank == 0:
    print(f"RESULT {total:.6e}")
    print("PASSED" if wrong == 0 else f"FAILED {wrong}")
