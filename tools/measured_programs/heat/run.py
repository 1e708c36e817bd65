# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that are divided among ranks: a product of matrices, a QR decomposition, a sort, clusters by k-means."""

import heat as ht
import torch

torch.set_num_threads(1)
ht.random.seed(1)
a = ht.random.rand(500, 500, split=0, dtype=ht.float64)
b = ht.random.rand(500, 500, split=1, dtype=ht.float64)
sums = [float(ht.sum(ht.matmul(a, b)).item()) for _ in range(4)]
moved = ht.resplit(a, 1)
sums.append(float(ht.sum(moved * b).item()))
ordered, _ = ht.sort(ht.random.rand(200000, split=0, dtype=ht.float64))
sums.append(float(ht.sum(ordered[:1000]).item()))
points = ht.random.rand(40000, 8, split=0, dtype=ht.float64)
clusters = ht.cluster.KMeans(n_clusters=4, init="random", max_iter=20, random_state=1)
clusters.fit(points)
sums.append(float(ht.sum(clusters.cluster_centers_).item()))
if ht.communication.MPI_WORLD.rank == 0:
    for each in sums:
        print(f"RESULT {each:.10e}")
