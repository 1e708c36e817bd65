# SPDX-License-Identifier: BSD-3-Clause
"""What people write first with mpi4py: two layers, whose gradients are summed while others are computed."""

import numpy
from mpi4py import MPI

WIDTH, STEPS = 512, 6  # 1 MiB for each layer

world = MPI.COMM_WORLD
random = numpy.random.default_rng(0)
layers = [random.standard_normal((WIDTH, WIDTH), dtype=numpy.float32) * 0.04 for _ in range(2)]
inputs = numpy.random.default_rng(1 + world.rank).standard_normal((32, WIDTH), dtype=numpy.float32)
losses = []
for _ in range(STEPS):
    hidden = numpy.maximum(inputs @ layers[0], 0)
    error = hidden @ layers[1] - inputs
    gradients, requests = [hidden.T @ error / 32], []
    sums = [numpy.empty_like(layer) for layer in layers]
    requests.append(world.Iallreduce(gradients[0], sums[1]))
    gradients.append(inputs.T @ (error @ layers[1].T * (hidden > 0)) / 32)
    requests.append(world.Iallreduce(gradients[1], sums[0]))
    losses.append(world.allreduce(float((error**2).mean())) / world.size)
    MPI.Request.Waitall(requests)
    layers = [layer - 0.01 * each / world.size for layer, each in zip(layers, sums)]
assert losses[-1] < losses[0], losses
