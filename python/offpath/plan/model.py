# SPDX-License-Identifier: BSD-3-Clause
"""Asks offpath-model, which prices the graphs that the service runs (src/model/), and builds what it is asked."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from offpath.base.errors import UserError
from offpath.base.paths import paths

HOST, DPU, POLICY = "host", "dpu", "policy"
SEND = "send"


def ask(request: dict) -> dict:
    """The model's answer. Raises UserError with its one line when it does not like the question."""
    program = paths().tool("offpath-model")
    result = subprocess.run([str(program)], input=json.dumps(request), capture_output=True, text=True)
    try:
        answer = json.loads(result.stdout)
    except json.JSONDecodeError:
        raise UserError(f"{program.name} gave no answer (exit {result.returncode}). Please report this.", 1) from None
    if "error" in answer:
        raise UserError(answer["error"] + ".")
    return answer


@dataclass(frozen=True)
class Placement:
    """Which node each rank is on, and which cores they and the services have; None: everybody has one of their own."""

    nodes: int
    ppn: int = 1
    cores: Sequence[Sequence[int]] | None = None
    service_cores: Sequence[int] | None = None

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn

    def request(self) -> dict:
        chosen = {"nodes": self.nodes, "ppn": self.ppn}
        if self.cores is not None:
            chosen["cores"] = [list(cores) for cores in self.cores]
        if self.service_cores is not None:
            chosen["service_cores"] = list(self.service_cores)
        return chosen


@dataclass(frozen=True)
class BenchTimes:
    """What the programs of bench/ would print, in ns."""

    pure: float
    total: float
    compute: float


def bench(
    machine: dict, where: Placement, kind: str, size: int, path: str, work_ns: float, *, repeats: int = 5
) -> BenchTimes:
    """The benchmark's own loop: pure, work alone, both; the ranks meet in between as they do there. `kind` send:
    messages both ways between partners."""
    uneven = {"sent_bytes": _blocks(where.ranks, size)} if kind == "ialltoallv" else {}
    operations: list[dict] = []
    program: list[list] = []
    marks: list[tuple[str, int, int]] = []

    def call(kind: str, size: int, path: str, **sizes) -> list[int]:
        first = len(operations)
        partners = [{"members": pair} for pair in _partners(where.ranks)] if kind == SEND else [{}]
        operations.extend({"kind": kind, "bytes": size, "path": path} | sizes | pair for pair in partners)
        return list(range(first, len(operations)))

    def blocking(kind: str, size: int) -> None:
        numbers = call(kind, size, HOST)
        program.extend((["post", *numbers], ["wait", *numbers]))

    def timed(name: str, acts: list[list]) -> None:
        blocking("ibarrier", 0)
        first = len(program)
        program.extend(acts)
        marks.append((name, first - 1, len(program) - 1))
        blocking("iallreduce", 8)

    for _ in range(repeats):
        pure = call(kind, size, path, **uneven)
        timed("pure", [["post", *pure], ["wait", *pure]])
        timed("compute", [["compute", work_ns]])
        blocking("ibarrier", 0)
        both = call(kind, size, path, **uneven)
        timed("total", [["post", *both], ["compute", work_ns], ["wait", *both]])
    request = {"do": "simulate", "machine": machine, "operations": operations, "program": program}
    ends = ask(request | where.request())["act_end_ns"]
    times: dict[str, list[float]] = {"pure": [], "compute": [], "total": []}
    for name, first, last in marks:
        times[name].append(max(rank[last] - rank[first] for rank in ends))
    return BenchTimes(*(statistics.median(times[name]) for name in ("pure", "total", "compute")))


def _partners(ranks: int) -> list[list[int]]:
    """Sender and receiver of each message (bench/messages/messages.cpp)."""
    return [[rank, (rank + ranks // 2) % ranks] for rank in range(ranks)]


def _blocks(ranks: int, size: int) -> list[list[int]]:
    """Of the benchmark's uneven exchange, by sender and receiver (bench/collectives/movement.cpp)."""
    block = max(1, size // ranks)
    return [[block + ((a + b) % 3 - 1) * (block // 8) for b in range(ranks)] for a in range(ranks)]
