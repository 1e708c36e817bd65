# SPDX-License-Identifier: BSD-3-Clause
"""What checked.c does, by mpi4py: "0 of 2: right" from each rank, or what was wrong and status 1."""

import sys

import numpy
from mpi4py import MPI

COUNT, ROUNDS = 3000, 3
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
wrong = []


def check(what, got, expected):
    if not numpy.array_equal(got, expected):
        wrong.append(f"{what}: {got} is not {expected}")


def alltoall_and_allreduce(round):
    every = numpy.arange(size)
    sent = numpy.arange(COUNT * size, dtype="i") + round + rank * COUNT * size
    got = numpy.zeros(COUNT * size, dtype="i")
    summand = numpy.arange(COUNT, dtype="d") + round + rank
    total = numpy.zeros(COUNT, dtype="d")
    MPI.Request.Waitall([comm.Ialltoall(sent, got), comm.Iallreduce(summand, total, op=MPI.SUM)])
    blocks = round + every[:, None] * COUNT * size + rank * COUNT + numpy.arange(COUNT)
    check("alltoall", got, blocks.reshape(-1))
    check("allreduce", total, (numpy.arange(COUNT) + round) * size + every.sum())


def put_and_accumulate(round):
    window = MPI.Win.Allocate(32 * 8, 8, comm=comm)
    memory = numpy.frombuffer(window, dtype="l")
    memory[:] = 0
    window.Fence()
    window.Put(numpy.array([100 * round + rank], dtype="l"), (rank + 1) % size)
    window.Fence()
    check("put", memory[0], 100 * round + (rank - 1) % size)
    window.Fence()
    window.Lock_all()
    for target in range(size):
        window.Accumulate(numpy.ones(1, dtype="l"), target, 1, op=MPI.SUM)
    window.Unlock_all()
    window.Fence()
    check("accumulate", memory[1], size)
    window.Free()


for each in range(ROUNDS):
    alltoall_and_allreduce(each)
    put_and_accumulate(each)
print("\n".join([*wrong, f"{rank} of {size}: {'WRONG' if wrong else 'right'}"]), flush=True)
sys.exit(bool(wrong))
