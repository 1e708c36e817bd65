# SPDX-License-Identifier: BSD-3-Clause
"""The running jobs of this user on this node, by the sockets of their services in the runtime folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import proc
from offpath.base.errors import UserError
from offpath.base.paths import runtime_folder
from offpath.telemetry.observation import NoService, Observation, Snapshot

Which = Annotated[
    Optional[str],
    typer.Argument(metavar="PID|JOB", help="A process of the job, like its mpirun, or its name. Default: all."),
]


@dataclass
class Job:
    """A job's part on this node, watched until its observation is closed."""

    name: str
    observation: Observation
    last: Snapshot

    def look(self) -> Snapshot:
        self.last = self.observation.read()
        return self.last

    def follow(self) -> bool:
        """To the service in the place of the one that has ended; False: there is none."""
        try:
            successor = Observation(self.observation.path)
        except (NoService, UserError):
            return False
        self.close()
        self.observation = successor
        self.look()
        return True

    def close(self) -> None:
        self.observation.close()


@contextlib.contextmanager
def watched(which: str | None, folder: Path | None = None) -> Iterator[list[Job]]:
    """At least one job: those that `which` names, a process id or how a job's name begins; None: all. `folder`: the
    runtime folder of another (emulated) node."""
    with contextlib.ExitStack() as stack:
        jobs, refusals = [], []
        for file in _sockets(which, folder):
            try:
                observation = Observation(file)
            except NoService:
                continue
            except UserError as error:
                refusals.append(error)
                continue
            name = file.stem.partition("-")[0]  # the rest is the node
            job = Job(name, observation, Snapshot(observation.process, []))
            stack.callback(job.close)
            job.look()
            if which is None or _is_meant(job, which):
                jobs.append(job)
        if not jobs:
            raise refusals[0] if refusals else _nothing(which)
        yield jobs


def _sockets(which: str | None, folder: Path | None) -> list[Path]:
    try:
        files = sorted((folder or runtime_folder()).glob("*.sock"))
    except OSError as error:
        raise UserError(f"the services' sockets cannot be looked for ({error}). Set OFFPATH_RUNTIME_DIR.") from None
    return [file for file in files if which is None or which.isdecimal() or file.stem.startswith(which)]


def _is_meant(job: Job, which: str) -> bool:
    if not which.isdecimal() or which == job.name:
        return job.name.startswith(which)
    processes = [job.last.process, *(client.process for client in job.last.clients)]
    return any(int(which) in _line_of(process) for process in processes)


def _line_of(process: int) -> Iterator[int]:
    """The process and its parents: who names mpirun means its ranks."""
    while process > 1:
        yield process
        try:
            process = proc.parent(process)
        except OSError:
            return


def _nothing(which: str | None) -> UserError:
    what = "no offloaded job" if which is None else f"no job '{which}'"
    return UserError(
        f"{what} of yours runs on this node (its service would have a socket in {runtime_folder()}). Start one with "
        "offpath run, or set OFFPATH_RUNTIME_DIR.",
        1,
    )
