# SPDX-License-Identifier: BSD-3-Clause
"""A lab with a Slurm for tests, and what is left on its nodes."""

import contextlib
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import AS_ROOT, LIMIT_S, captured
from offpath.lab import Lab, inventory, slurm


class Cluster:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.has_groups = inventory.has_slurm_groups()
        self.environment = slurm.variables(lab.plan) | AS_ROOT

    def run(
        self, argv: Sequence[str], folder: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess:
        """Runs `argv` as somebody who is logged in, in a folder that the nodes see, to its end."""
        return captured(slurm.command(self.lab, argv), cwd=folder, env=os.environ | self.environment | (env or {}))

    def batch(self, script: str, folder: Path, *options: str, wait: bool = True) -> str:
        """Submits it, standard error in its output; the job's number. With `wait` when it has ended."""
        (folder / "job.sh").write_text(f"#!/bin/bash\n{script}\n")
        result = self.run(["sbatch", "--parsable", *options, "job.sh"], folder)
        assert result.stdout.strip(), result.stderr
        if wait:
            until(self.is_idle, lambda: "the job does not end")
        return result.stdout.split()[0]

    def services(self, places: Iterable[str] | None = None) -> list[int]:
        """Of the lab, agents among them, or of these places of it."""
        found = []
        for pid in inventory.processes(self.lab.name, places):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if Path(f"/proc/{pid}/comm").read_text().strip() == "offpathd":
                    found.append(pid)
        return found

    def sockets(self) -> list[str]:
        return [name for name in self.left() if name.endswith(".sock")]

    def left(self) -> list[str]:
        """What lies in runtime folders, on nodes and on DPUs that are machines."""
        places = [*self.lab.plan.nodes, *(dpu.place for dpu in self.lab.plan.dpus)]
        return [str(file) for place in places for file in self.lab.plan.runtime_folder(place).glob("*")]

    def is_idle(self) -> bool:
        return not self.run(["squeue", "--noheader"], Path("/")).stdout.strip()

    def assert_clean(self) -> None:
        """No job, no service, nothing of it in a folder, on any node or DPU."""
        self.await_end()
        until(lambda: not self.left(), lambda: f"files are left: {self.left()}")  # an epilog comes last

    def await_end(self) -> None:
        until(lambda: self.is_idle() and not self.services(), lambda: "jobs or services are left")


def until(condition: Callable[[], object], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(what(), pytrace=False)
        time.sleep(0.02)


@contextlib.contextmanager
def running(
    settings: Sequence[str] = (), files: Mapping[str, str] | None = None, nodes: int = 2, **lab_options: Any
) -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("the lab and Slurm's daemons need root")
    missing = [name for name in (*slurm.DAEMONS, *slurm.COMMANDS) if not shutil.which(name, path=slurm.SEARCHED)]
    if missing:
        pytest.skip(f"Slurm is not installed (no {', '.join(missing)}; make setup installs it)")
    with Lab(nodes=nodes, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}", **lab_options) as lab:
        slurm.up(lab, settings, files or {})
        yield Cluster(lab)
