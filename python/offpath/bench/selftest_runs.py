# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath selftest` says of an MPI: a program checks its results alone, offloaded, with a service killed."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath.base import handover
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench.fault_verdicts import ERROR, RIGHT, STOOD, Ended, judged
from offpath.bench.selftest_nodes import LOSS, NO, OK, Row
from offpath.launch import mpis, stats
from offpath.places import allocation
from offpath.places.allocation import AllocationPlace

STRIKE = Path(__file__).with_name("service_strike.py")
SECONDS = ("--seconds", "1", "--bytes", str(256 << 10))
FABRIC, RDMA, TCP, UCX = "OFFPATH_FABRIC", "rdma", "tcp", "ucx"
NO_CORE = re.compile(r"no (spare )?core")
EXPLAINED = "docs/troubleshooting.md explains messages."
NOT_BUILT = "built without the fabric"
WARNING = re.compile(r"\b(?:warn|error): (.*)")
SERVICE_CORES = re.compile(r"service cores of ([^\s:]+): ([\d,-]+)")


@dataclass(frozen=True)
class Run:
    ended: Ended
    ranks: list[dict]
    said: str  # on standard error
    log: str  # of the services

    @property
    def offloaded(self) -> int:
        return stats.offloaded_count(self.ranks)

    @property
    def is_right(self) -> bool:
        return self.ended.verdict == RIGHT and self.offloaded > 0

    @property
    def problem(self) -> str:
        """Why it is not right: what a rank says, or else the services' last warning."""
        if self.ended.verdict != RIGHT:
            return self.ended.said or self.ended.verdict
        reasons = [str(rank["reason"]) for rank in self.ranks if rank.get("reason")]
        warnings = WARNING.findall(self.log)
        return (reasons or warnings[::-1] or ["no rank said why" if self.ranks else "no rank loaded Offpath"])[0]


def rows(where: AllocationPlace, ranks: int, cards: bool) -> Iterator[Row]:
    """`cards`: all nodes have RDMA."""
    title = mpis.TITLES[where.launcher.mpi]
    try:
        allocation.try_mpi(where, ranks)
        alone = _run(where, False)
    except UserError as error:
        yield Row(title, NO, str(error))
        return
    if alone.ended.verdict != RIGHT:
        yield Row(title, NO, f"fails by itself: {alone.problem}", "Have this MPI run its own tests; Offpath was off.")
        return
    yield Row(title, OK, f"{ranks} ranks are one job; all results are right without Offpath")
    offloaded, shares = _run(where, True), False
    if not offloaded.offloaded and NO_CORE.search(offloaded.problem):
        shares, where = True, dataclasses.replace(where, launcher=dataclasses.replace(where.launcher, share=True))
        offloaded = _run(where, True)
    yield _cores(f"{title}, cores", shares, offloaded)
    yield _offloaded(f"{title}, offloaded", offloaded)
    if not offloaded.is_right:
        return
    if len(where.nodes) > 1:
        yield from _networks(where, cards, offloaded)
    yield _killed(f"{title}, a service is killed", where)


def _run(
    where: AllocationPlace, offload: bool, env: Mapping[str, str] | None = None, more: Sequence[str] = SECONDS
) -> Run:
    program = str(paths().bench_program("faults", where.launcher.mpi))
    with handover.folder() as folder:
        log = folder / "service.log"
        told = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_LOG": "info", "OFFPATH_SERVICE_LOG": str(log)} if offload else {}
        try:
            result = where.run(where.launcher.mpi, [program, *more], offload, told | dict(env or {}))
        except UserError as error:  # it did not end
            return Run(Ended(STOOD, said=str(error)), [], "", _text(log))
        return Run(judged(result), result.stats, result.stderr or "", _text(log))


def _text(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""


def _cores(what: str, shares: bool, run: Run) -> Row:
    if shares:
        do = "Give each node of a job a core more than it has ranks (docs/job-scripts.md)."
        return Row(what, LOSS, "none is left for the service; it works on those of the ranks (--share)", do)
    found = sorted(set(SERVICE_CORES.findall(run.said)))
    said = ", ".join(f"{cores} on {node}" for node, cores in found[:4])
    return Row(what, OK, f"the service has its own{': ' if said else ''}{said}")


def _offloaded(what: str, run: Run) -> Row:
    if run.is_right:
        return Row(what, OK, f"all results are right; {run.offloaded} operations were offloaded")
    if run.ended.verdict == RIGHT:
        return Row(what, NO, f"nothing was offloaded: {run.problem}", EXPLAINED)
    return Row(what, NO, run.problem, "Please report this, with what OFFPATH_LOG=debug says.")


def _networks(where: AllocationPlace, cards: bool, carried: Run) -> Iterator[Row]:
    """The one that services take by themselves has carried the program already; cards that do not are warned of."""
    usual = os.environ.get(FABRIC) or (RDMA if cards else TCP)
    warnings = [line for line in WARNING.findall(carried.log) if RDMA in line.lower()]
    if usual == RDMA and warnings:
        yield Row(f"network {RDMA}", LOSS, f"{warnings[0]}; {TCP} does it", EXPLAINED)
    else:
        yield Row(f"network {usual}", OK, "carries what is between nodes")
    for name in (TCP, UCX):
        if name == usual or os.environ.get(FABRIC):
            continue
        run = _run(where, True, {FABRIC: name})
        if run.is_right:
            yield Row(f"network {name}", OK, f"works where {FABRIC}={name} asks for it")
        elif NOT_BUILT not in run.log:
            yield Row(f"network {name}", LOSS, run.problem, f"Leave {FABRIC} alone: {usual} works.")


def _killed(what: str, where: AllocationPlace) -> Row:
    with handover.folder() as folder:
        env = {"OFFPATH_SERVICE_WRAPPER": shlex.join([sys.executable, str(STRIKE), str(folder)])}
        run = _run(where, True, env, ["--ready", str(folder / "ready"), "--until", str(folder / "until"), *SECONDS[2:]])
        killed = (folder / "killed").exists()
    if run.ended.verdict == ERROR:
        return Row(what, LOSS, f"the program ends with an error of its MPI: {run.problem}", "Restart such a job.")
    if run.ended.verdict != RIGHT:
        return Row(what, NO, run.problem, "Please report this, with what OFFPATH_LOG=debug says.")
    if not killed:
        do = "Run it again, with OFFPATH_LOG=debug."
        return Row(what, NO, f"no service was there to be killed: {run.problem}", do)
    return Row(what, OK, "the program goes on; all results are right")
