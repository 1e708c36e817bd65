# SPDX-License-Identifier: BSD-3-Clause
"""Whether others used the machine while a benchmark measured: what they took is in its times.

Looked at before and after: the load average, and which share of their cores loops get that run on all of them at once.
Over the benchmark: the part of the processors' time that a hypervisor gave to others (steal).
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MOST_CORES = 8  # with a loop
LOOP_S = 0.1
BUSY_STEAL, BUSY_LOOP = 0.02, 0.95  # more of the one, less of the other


@dataclass(frozen=True)
class Look:
    """`ticks`: of /proc/stat, all and stolen. `loop_share`: of the loop that got least; 1 is a core of its own."""

    load: float
    ticks: tuple[int, int]
    loop_share: float

    @classmethod
    def now(cls) -> Look:
        load = float(_first_line("/proc/loadavg").split()[0])  # ahead of our loops
        return cls(load, _ticks(), min(_loop_shares(), default=1.0))


_begun: Look | None = None


def watched(command: Callable) -> Callable:
    """The same command; facts() are of the time since it began."""

    @functools.wraps(command)
    def begin_and_run(*arguments, **options):
        global _begun
        _begun = Look.now()
        return command(*arguments, **options)

    return begin_and_run


def facts(work_share: float = 1.0) -> dict | None:
    """For a result's meta; None where nothing watched. `work_share`: of its core, what the benchmark's own loop got."""
    return None if _begun is None else between(_begun, Look.now(), len(os.sched_getaffinity(0)), work_share)


def between(begun: Look, ended: Look, cores: int, work_share: float = 1.0) -> dict:
    ticks, stolen = (after - before for after, before in zip(ended.ticks, begun.ticks))
    steal, loop = stolen / ticks if ticks > 0 else 0.0, min(begun.loop_share, ended.loop_share)
    reasons = []
    if begun.load > cores:
        reasons.append(f"load average {begun.load:g} on {cores} cores before it began")
    if steal > BUSY_STEAL:
        reasons.append(f"{steal:.1%} of the processors' time were stolen by other virtual machines")
    if loop < BUSY_LOOP:
        reasons.append(f"a loop got {loop:.0%} of its core")
    if work_share < BUSY_LOOP:
        reasons.append(f"the computation got {work_share:.0%} of its core")
    return {
        "load_before": begun.load, "load_after": ended.load, "steal_share": round(steal, 4),
        "loop_share_before": round(begun.loop_share, 3), "loop_share_after": round(ended.loop_share, 3),
        "work_share": round(work_share, 3),
        "busy": reasons,
    }  # fmt: skip


def _first_line(name: str) -> str:
    return Path(name).read_text().partition("\n")[0]


def _ticks() -> tuple[int, int]:
    ticks = [int(word) for word in _first_line("/proc/stat").split()[1:9]]  # user ... softirq, steal
    return sum(ticks), ticks[7]


def _loop_shares() -> list[float]:
    """A process for each core, all at once: one that has to share its core moves elsewhere where it may."""
    looping = [_loop_on(core) for core in sorted(os.sched_getaffinity(0))[:MOST_CORES]]
    shares = []
    for pid, answer in looping:
        with os.fdopen(answer) as said:
            shares += [float(word) for word in said.read().split()]
        os.waitpid(pid, 0)
    return shares


def _loop_on(core: int) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        os.sched_setaffinity(0, {core})
        begin, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() - begin < LOOP_S:
            pass
        share = (time.process_time() - cpu) / (time.perf_counter() - begin)
        os.write(writing, f"{min(1.0, share)}".encode())
    finally:
        os._exit(0)
