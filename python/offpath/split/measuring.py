# SPDX-License-Identifier: BSD-3-Clause
"""What one core draws from memory here, and two at once: the weights of `offpath split --weights measured`."""

import multiprocessing
import time

import numpy

from offpath.base.errors import UserError
from offpath.split.costs import Machine, Side

_ROWS = 1 << 22  # 32 MiB per vector: no cache holds three of them
_REPEATS = 9
_BYTES_PER_ROW = 16 + 24  # y *= a reads and writes y; y += x reads both and writes y


def measured_machine(reduction_s: float) -> Machine:
    """Host and DPU are two cores of this machine. Takes about 2 s."""
    alone = _bandwidths(1)[0]
    together = sum(_bandwidths(2))
    return Machine(Side(alone), Side(alone), shared_bytes_per_s=max(alone, together), reduction_s=reduction_s)


def _bandwidths(processes: int) -> list[float]:
    """Bytes per second of each of several processes that run at the same time."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(processes), context.SimpleQueue()
    running = [context.Process(target=_update_vectors, args=(barrier, results)) for _ in range(processes)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    if any(each.exitcode != 0 for each in running):
        raise UserError("memory bandwidth could not be measured (out of memory?). Give --weights FILE instead.", 1)
    return [results.get() for _ in running]


def _update_vectors(barrier, results) -> None:
    x, y = numpy.ones(_ROWS), numpy.ones(_ROWS)
    times = []
    barrier.wait()
    for _ in range(_REPEATS):
        start = time.perf_counter()
        y *= 0.5
        y += x
        times.append(time.perf_counter() - start)
    results.put(_ROWS * _BYTES_PER_ROW / sorted(times)[len(times) // 2])
