# SPDX-License-Identifier: BSD-3-Clause
"""Launches of `offpath bench guest`: jobs that begin to work together, and strangers on the same cores."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from offpath.base import files, handover
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench.crowd import Crowd
from offpath.bench.kit import FAILED
from offpath.bench.measuring import Peer
from offpath.launch import local, stats
from offpath.launch.local import Prepared
from offpath.places import comparison

ONE, OWN = "one", "own"
SLEEPS, COMPUTES = "sleeps", "computes"
PATIENCE_S = 120.0  # for starting and for ending; longer is a hang
LOOK_S = 0.02


@dataclass(frozen=True)
class Setting:
    """Who is beside the stranger, and which stranger."""

    mpi: str
    jobs: int
    ranks: int  # of each job
    sessions: str  # of the jobs: one for all, or each its own
    stranger: str  # sleeps on each core, or a computation beside that, too

    @property
    def labels(self) -> dict:
        return asdict(self)

    @property
    def text(self) -> str:
        shared = f", {self.sessions} session" if self.jobs > 1 else ""
        return f"{self.jobs} x {self.ranks} ranks{shared}, {self.stranger}"


@dataclass(frozen=True)
class Outcome:
    """Of one launch of a crowd: what the jobs did and what the strangers felt, one entry for each."""

    jobs: list[dict]
    sleepers: list[dict]
    computations: list[dict]


Stranger = tuple[subprocess.Popen, Path]  # and where it says what it got


def launch_crowd(setting: Setting, mode: Peer, load: list[str], seconds: float, _: object) -> Outcome:
    """One launch; all of it has ended afterwards, also when it is interrupted. Raises UserError."""
    crowded = setting.jobs * setting.ranks > len(local.available_cores())
    program = [str(paths().bench_program("load", setting.mpi)), *load]
    with ExitStack() as stack:
        folder = stack.enter_context(handover.folder())
        jobs = []
        for job in range(setting.jobs):
            asked = {"--ready": folder / f"ready{job}", "--go": folder / "go", "--json": _json(folder, job)}
            argv = [*program, *(str(word) for pair in asked.items() for word in pair)]
            wish = local.prepared(setting.mpi, setting.ranks, argv, mode.offload, mode.env, crowded=crowded)
            jobs.append(stack.enter_context(wish))
        crowd = stack.enter_context(Crowd())
        sleepers = _strangers(crowd, folder, SLEEPS)
        running = [_started(crowd, folder, setting, job, each) for job, each in enumerate(jobs)]
        problem = _until(PATIENCE_S, running, lambda: all((folder / f"ready{i}").exists() for i in range(len(jobs))))
        computed: list[dict] = []
        if problem is None:
            computations = _strangers(crowd, folder, COMPUTES) if setting.stranger == COMPUTES else []
            (folder / "go").touch()
            _until(seconds, [], lambda: _over(running))
            computed = _ended(computations)
            problem = _until(PATIENCE_S, [], lambda: _over(running))
        felt = _ended(sleepers)
        done = [files.json_if_any(_json(folder, job)) for job in range(len(jobs))]
        problem = _failed(folder, running, done) or problem or (_idle(jobs) if mode.must_offload else None)
    if problem:
        raise UserError(problem, FAILED)
    return Outcome([each for each in done if each], felt, computed)


def computation_alone(seconds: float = 0.5) -> list[float]:
    """Pieces per second on each core, with nobody beside."""
    with handover.folder() as folder, Crowd() as crowd:
        started = _strangers(crowd, folder, COMPUTES)
        time.sleep(seconds)
        return [rate(each) for each in _ended(started)]


def rate(computation: dict) -> float:
    return computation["pieces_count"] / (computation["took_ns"] / 1e9)


def _started(crowd: Crowd, folder: Path, setting: Setting, job: int, wish: Prepared) -> subprocess.Popen:
    own = folder / f"mpi{job}"  # several jobs of one wish begin together
    own.mkdir()
    environ = wish.environ | local.own_sessions(setting.mpi, own)
    return crowd.start(wish.command, environ, folder / f"said{job}", own_session=setting.sessions == OWN)


def _strangers(crowd: Crowd, folder: Path, does: str) -> list[Stranger]:
    """One on each core, all of which have begun."""
    program, found = str(paths().tool("offpath-stranger")), []
    for core in local.available_cores():
        output = folder / f"{does}{core}"
        found.append((crowd.start([program, "--does", does, "--core", str(core)], os.environ, output), output))
    processes, outputs = zip(*found)
    if _until(PATIENCE_S, processes, lambda: all(file.read_bytes() for file in outputs)):
        raise UserError(f"An unrelated program could not be started ({_last_words(outputs)}). Run: make build")
    return found


def _ended(strangers: Sequence[Stranger]) -> list[dict]:
    """What they got."""
    for process, _ in strangers:
        process.terminate()
    found = []
    for process, output in strangers:
        process.wait(timeout=PATIENCE_S)
        if process.returncode != 0:
            raise UserError(f"An unrelated program failed ({_last_words([output])}). Run: make build")
        found.append(json.loads(output.read_text().splitlines()[-1]))
    return found


def _over(running: Sequence[subprocess.Popen]) -> bool:
    return all(each.poll() is not None for each in running)


def _until(seconds: float, needed: Sequence[subprocess.Popen], holds: Callable[[], bool]) -> str | None:
    """Waits until something holds; what is wrong when it does not in time, or one of the needed has ended."""
    end = time.monotonic() + seconds
    while not holds():
        if any(each.poll() is not None for each in needed):
            return "a job ended before it could begin"
        if time.monotonic() > end:
            return f"a job needed more than {seconds:.0f} s to begin or to end (it hangs)"
        time.sleep(LOOK_S)
    return None


def _failed(folder: Path, running: Sequence[subprocess.Popen], done: Sequence[dict | None]) -> str | None:
    """What a job that has ended says of its failure."""
    for job, each in enumerate(running):
        if each.poll() is not None and (each.returncode != 0 or done[job] is None):
            return f"a job failed ({_last_words([folder / f'said{job}'])}; exit {each.returncode})"
    return None


def _idle(jobs: Sequence[Prepared]) -> str | None:
    ranks = [rank for each in jobs for rank in stats.read(each.stats_file)]
    return None if stats.offloaded_count(ranks) else stats.unused(ranks)


def _json(folder: Path, job: int) -> Path:
    return folder / f"out{job}.json"


def _last_words(outputs: Sequence[Path]) -> str:
    said = "\n".join(file.read_text(errors="replace") for file in outputs)
    return comparison.last_words(said, "(load|offpath|offpath-stranger):|.*WRONG")
