# SPDX-License-Identifier: BSD-3-Clause
"""An offload that loses is switched off, and on again when it wins: services that are stopped most of the time for a
while. Judged by what was counted."""

import contextlib
import os
import signal
import threading
import time
import uuid
from pathlib import Path

import pytest
from conftest import LIMIT_S, requires_root
from offpath.lab import Lab
from offpath.paths import paths

pytestmark = requires_root


def services_of(folder: Path) -> list[int]:
    """Process ids of the services whose job has `folder` in its environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            ours = str(paths().service) in (entry / "cmdline").read_text().split("\0")
            here = str(folder).encode() in (entry / "environ").read_bytes()
        except OSError:
            continue
        if ours and here:
            found.append(int(entry.name))
    return found


def disturb(folder: Path, stop: threading.Event) -> None:
    """From the file slow to the file fast the services work for 10 ms of every 200."""
    while not (folder / "slow").exists() and not stop.is_set():
        time.sleep(0.005)
    pids = services_of(folder)
    while not (folder / "fast").exists() and not stop.is_set():
        for what, seconds in ((signal.SIGSTOP, 0.19), (signal.SIGCONT, 0.01)):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, what)
            time.sleep(seconds)


@pytest.mark.parametrize("mpi", ("openmpi", "mpich"))
def test_an_offload_goes_off_and_on_again(mpi, tmp_path):
    program = paths().prefix / "tests" / "interpose" / mpi / "adapting"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    stop = threading.Event()
    disturber = threading.Thread(target=disturb, args=(tmp_path, stop))
    env = {"OFFPATH_MPI_ADAPT": "on", "OFFPATH_MPI_ADAPT_PERCENT": "100", "ADAPTING_FOLDER": str(tmp_path)}
    with Lab(nodes=2, name=f"t{uuid.uuid4().hex[:6]}") as lab:
        disturber.start()
        try:
            argv = [str(program), "disturbed", str(tmp_path)]
            result = lab.mpirun(mpi, 1, argv, offload=True, env=env, timeout=LIMIT_S)
        finally:
            stop.set()
            disturber.join()
    assert result.returncode == 0, result.stderr + result.stdout
    assert "disturbed: ok" in result.stdout
    first, second = result.stats
    assert first["why"] == second["why"], "the ranks went different ways"
    assert first["collectives"] == second["collectives"]
    (learned,) = next(rank["learned"] for rank in result.stats if rank["learned"]).values()
    assert learned["switches_count"] >= 2, learned
    assert learned["path"] == "dpu", learned
    assert learned["dpu_ns"] < learned["host_ns"], learned
    assert first["collectives"]["ialltoall"]["native_count"] > 4, "it was only tried on the host"
