# SPDX-License-Identifier: BSD-3-Clause
"""Launches of `offpath bench faults`: a program, and a service of its job to which something happens at some moment."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from offpath.base import handover
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench.fault_verdicts import ERROR, RIGHT, Ended, judged, stood
from offpath.bench.kit import FAILED
from offpath.lab import inventory
from offpath.launch import mpis, stats
from offpath.places.comparison import LabPlace, LoopbackPlace
from offpath.telemetry import observation

SERVICE = "offpathd"
STATS_FILE = "OFFPATH_STATS_FILE"  # each run has its own, by which its services are known
# Nobody gives up within a run: who waits for a lost service for ever is found to stand.
NOBODY_GIVES_UP = {"OFFPATH_MPI_LOSS_TIMEOUT_MS": "86400000"}
LOOK_S = 0.01
LOOK_AFTER_S = 0.5
LEFT_BEHIND_S = 10.0  # so long after others of their program ranks do not end
END_PATIENCE_S = 5.0  # for services that end by themselves
WARNING = re.compile(r"^offpath warn.*", re.MULTILINE)
ATTEMPTS = 20  # of a kill; each comes too late for a program that has ended
PIDFD_GETFD = 438  # the system call, which Python does not know


@dataclass(frozen=True)
class Fault:
    """What happens to a service. `strike`: whether it was still there for that."""

    strike: Callable[[int], bool]
    env: Mapping[str, str] = field(default_factory=dict)  # of such runs
    is_loss: bool = True  # else a program may not even warn


def kill(service: int) -> bool:
    return _send(service, signal.SIGKILL)


def stop(service: int) -> bool:
    return _send(service, signal.SIGSTOP)


def _send(service: int, signum: signal.Signals) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(service, signum)
        return True
    return False


def replace(service: int) -> bool:
    """Whether another one is in its place now, as by `offpath service restart`; else it ended before."""
    try:
        words = Path(f"/proc/{service}/cmdline").read_text().split("\0")
        socket = words[words.index("--socket-path") + 1]
        observation.replace(Path(f"/proc/{service}/root{socket}"))  # a node of a lab has a /tmp of its own
    except observation.NoService:  # its last client has left
        return False
    except (OSError, ValueError, UserError):
        if _lives(service):
            raise
        return False
    return True


def break_connections(service: int) -> bool:
    """Resets all that it has to other services. Whether there was any."""
    broken = 0
    with contextlib.suppress(OSError):  # it has ended meanwhile
        process = os.pidfd_open(service)
        try:
            for name in os.listdir(f"/proc/{service}/fd"):
                with contextlib.suppress(OSError):
                    broken += _reset(process, int(name), os.readlink(f"/proc/{service}/fd/{name}"))
        finally:
            os.close(process)
    return broken > 0


def _reset(process: int, number: int, what: str) -> bool:
    if not what.startswith("socket:"):
        return False
    copy = ctypes.CDLL(None).syscall(PIDFD_GETFD, process, number, 0)
    if copy < 0:
        return False
    with socket.socket(fileno=copy) as end:
        if end.type != socket.SOCK_STREAM or end.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        end.getpeername()  # raises where nobody is connected
        unconnected = ctypes.create_string_buffer(16)  # AF_UNSPEC: the kernel resets what stands
        return ctypes.CDLL(None).connect(end.fileno(), unconnected, 16) == 0


def _lives(process: int) -> bool:
    """Not that it has ended, and nobody has asked how yet: then it has no command line any more."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""
    return False


# A service that is stopped counts as lost when it has been silent for so long; by default for 30 s.
FAULTS = {
    "kill": Fault(kill),
    "stop": Fault(stop, {"OFFPATH_SERVICE_SILENCE_MS": "2000"}),
    "break": Fault(break_connections),
    "replace": Fault(replace, is_loss=False),
}


@dataclass(frozen=True)
class Program:
    """A program that checks its results and says its longest wait."""

    name: str
    about: str
    kind: str  # of our programs: apps or bench
    file: str
    arguments: tuple[str, ...]
    on_nodes: tuple[str, ...] = ()  # instead, on several: links are slower than memory
    with_openmpi: tuple[str, ...] = ()  # besides
    policy: str = "*:dpu"

    def command(self, mpi: str, nodes: int, more: Sequence[str] = ()) -> list[str]:
        where = paths()
        path = where.app(self.file, mpi) if self.kind == "apps" else where.bench_program(self.file, mpi)
        usual = self.on_nodes if nodes > 1 and self.on_nodes else self.arguments
        return [str(path), *usual, *(self.with_openmpi if mpi == mpis.OPENMPI else ()), *more]


@dataclass(frozen=True)
class Kill:
    """One kill, and what became of the program."""

    number: int
    moment_s: float  # after the first service was there
    ended: Ended
    late: int  # kills before it that found no service

    @property
    def row(self) -> dict:
        return {
            "number": self.number, "moment_s": round(self.moment_s, 4), "verdict": self.ended.verdict,
            "longest_wait_s": self.ended.longest_wait_s, "said": self.ended.said, "output": self.ended.output,
        }  # fmt: skip


class Series:
    """A program at a place with one MPI: first without a kill, then with one in each launch."""

    def __init__(self, program: Program, mpi: str, nodes: int, seed: int, patience_s: float, more: Sequence[str] = (),
                 fault: Fault = FAULTS["kill"]):  # fmt: skip
        self.program, self.mpi, self.seed, self.patience_s = program, mpi, seed, patience_s
        self.fault = fault
        self.argv = program.command(mpi, nodes, more)
        self.labels = {"mpi": mpi, "nodes": nodes, "program": program.name}
        self.kills = 0
        self.life_s: float | None = None

    def unkilled(self, where: LabPlace | LoopbackPlace) -> Ended:
        """How long its services live, and what it waits by itself. Raises UserError where that fails."""
        ended, watch, offloaded = self._run(where, None, self.patience_s)
        if ended.verdict != RIGHT or watch.life_s is None or not offloaded:
            said = ended.said or ("no service was started" if watch.life_s is None else "nothing was offloaded")
            raise UserError(f"{ended.verdict} without a kill ({said}). Try OFFPATH_LOG=info to see more.", FAILED)
        self.life_s = watch.life_s
        return ended

    def killed(self, where: LabPlace | LoopbackPlace) -> Kill:
        """Raises UserError where no kill came in time."""
        if self.life_s is None:
            raise UserError("not launched: it did not even run without a kill.", FAILED)
        self.kills += 1
        moments = random.Random(f"{self.seed} {sorted(self.labels.items())} {self.kills}")
        for late in range(ATTEMPTS):
            moment_s = moments.uniform(0, self.life_s)
            ended, watch, _ = self._run(where, (moment_s, moments.random()), self.patience_s + 3 * self.life_s)
            if watch.killed:
                return Kill(self.kills, moment_s, ended, late)
            if ended.verdict != RIGHT:
                said = f"{ended.verdict} without a kill ({ended.said}). Please report this."
                raise UserError(said, FAILED)
        raise UserError(f"{ATTEMPTS} kills came too late. Is the machine busy?", FAILED)

    def _run(
        self, where: LabPlace | LoopbackPlace, kill: tuple[float, float] | None, timeout_s: float
    ) -> tuple[Ended, Watch, bool]:
        """The run, its services, and whether anything was offloaded; nothing of it is left."""
        where.timeout_s = timeout_s
        with handover.folder() as folder:
            mark = {STATS_FILE: str(folder / "stats")}
            env = {"OFFPATH_POLICY": self.program.policy, **NOBODY_GIVES_UP, **self.fault.env, **mark}
            offloaded, patience_s = False, 0.0
            try:
                with Watch(mark, kill, self.fault.strike).running() as watch:
                    result = where.run(self.mpi, self.argv, True, env)
                ended, offloaded = judged(result, watch.left_behind), stats.offloaded_count(result.stats) > 0
                said = watch.refused or (WARNING.search(result.stderr or "") or [""])[0]
                if not self.fault.is_loss and ended.verdict == RIGHT and said:
                    ended = dataclasses.replace(ended, verdict=ERROR, said=said, output=result.stderr)
                patience_s = END_PATIENCE_S
            except subprocess.TimeoutExpired as error:
                ended = stood(error)
            finally:
                end_run(mark, patience_s)
        return ended, watch, offloaded


class Watch:
    """Looks for the services of a run, and strikes one of them: (so long after the first one was there, which of them:
    of all those there are by that time this part of 1)."""

    def __init__(self, mark: Mapping[str, str], kill: tuple[float, float] | None,
                 strike: Callable[[int], bool] = kill):  # fmt: skip
        self.mark, self.kill, self.strike = mark, kill, strike
        self.killed = False
        self.refused = ""  # why that could not be
        self.left_behind = False  # ranks that had to be ended, as others were gone
        self.began: float | None = None
        self.life_s: float | None = None  # from the first service to the end of the run
        self._over = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator[Watch]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()
            if self.began is not None:
                self.life_s = time.monotonic() - self.began

    def _look(self) -> None:
        while not services(self.mark):
            if self._over.wait(LOOK_S):
                return
        self.began = time.monotonic()
        if self.kill is None or self._over.wait(self.kill[0]):
            return
        there, ranks = services(self.mark), self._ranks()
        if there:
            try:
                self.killed = self.strike(there[int(self.kill[1] * len(there))])
            except UserError as error:
                self.killed, self.refused = True, str(error)
        self._end_left_behind(ranks)

    def _ranks(self) -> int:
        return len(_marked(self.mark)) - len(services(self.mark))

    def _end_left_behind(self, ranks: int) -> None:
        gone_s = 0.0
        while not self._over.wait(LOOK_AFTER_S):
            gone_s = gone_s + LOOK_AFTER_S if 0 < self._ranks() < ranks else 0.0
            if gone_s > LEFT_BEHIND_S:
                self.left_behind = True
                inventory.end_processes(lambda: _marked(self.mark))
                return


def end_run(mark: Mapping[str, str], patience_s: float = END_PATIENCE_S) -> None:
    """Nothing is left of it afterwards; what ends by itself has so long."""
    inventory.end_processes(lambda: _marked(mark), patience_s)


def services(mark: Mapping[str, str]) -> list[int]:
    """Of the run whose processes have this in their environment."""
    found = []
    for pid in _marked(mark):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if Path(f"/proc/{pid}/comm").read_text().strip() == SERVICE:
                found.append(pid)
    return found


def _marked(mark: Mapping[str, str]) -> list[int]:
    ((name, value),) = mark.items()
    return inventory.processes_marked(f"{name}={value}")
