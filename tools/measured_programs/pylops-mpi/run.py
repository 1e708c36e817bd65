# SPDX-License-Identifier: BSD-3-Clause
"""Least squares with a second derivative of divided arrays, damped, by conjugate gradients."""

import numpy as np
import pylops_mpi
from mpi4py import MPI

world = MPI.COMM_WORLD
SIZE = 40000
second = pylops_mpi.MPISecondDerivative((SIZE,))
truth = pylops_mpi.DistributedArray(global_shape=SIZE)
low = sum(shape[0] for shape in truth.local_shapes[: world.rank])
at = np.arange(low, low + truth.local_shape[0]) / 100
truth[:] = np.sin(at) + np.cos(30 * at)
data = second @ truth
start = pylops_mpi.DistributedArray(global_shape=SIZE)
start[:] = 0.0
found = pylops_mpi.cgls(second, data, x0=start, niter=40, damp=1.0, tol=0.0)[0]
gradient = second.H @ (data - second @ found) - found
error = float(np.ravel(gradient.norm())[0] / np.ravel(data.norm())[0])
size = float(np.ravel(found.norm())[0])
if world.rank == 0:
    print(f"RESULT {size:.8e}")
    print("PASSED" if error < 1e-6 else f"FAILED {error}")
