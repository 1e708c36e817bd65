# SPDX-License-Identifier: BSD-3-Clause
"""DPUs that are machines and cannot be reached any more while a job runs: it ends, says why, and nothing is left."""

import contextlib
import os
import re
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from conftest import LIMIT_S, require, requires_root
from loss_support import meanwhile
from offpath.base.paths import paths
from offpath.lab import Lab
from offpath.lab.plan import dpu_address, host_address, namespace
from offpath.launch import closing_line, mpis

pytestmark = requires_root
SILENCE_MS = 1000
ENVIRONMENT = {"OFFPATH_POLICY": "ialltoall:0-inf:dpu", "OFFPATH_SERVICE_SILENCE_MS": str(SILENCE_MS)}
ENDS = (("node1", "dpu1", dpu_address(1, 1)), ("node1-dpu", "host1", host_address(1)))


@pytest.fixture(scope="module")
def machines():
    with Lab(nodes=2, rate="1gbit", dpus=1, name=f"t{uuid.uuid4().hex[:6]}") as lab:
        yield lab


def cut(lab) -> None:
    """What node1 and its DPU send to each other arrives nowhere, and neither is told."""
    for place, device, peer in ENDS:
        nowhere = ["lladdr", "02:00:00:00:00:01", "dev", device, "nud", "permanent"]
        subprocess.run(["ip", "-n", namespace(lab.name, place), "neigh", "replace", peer, *nowhere], check=True)


def heal(lab) -> None:
    for place, device, peer in ENDS:
        words = ["ip", "-n", namespace(lab.name, place), "neigh", "del", peer, "dev", device]
        subprocess.run(words, capture_output=True, check=False)


def reboot(lab) -> None:
    """All processes of the DPU are gone, without a last word to its host."""
    cut(lab)
    init = int((lab.plan.state_dir / "node1-dpu" / "init").read_text())
    machine = os.readlink(f"/proc/{init}/ns/pid")
    assert machine != os.readlink("/proc/self/ns/pid")
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and int(entry) != init and os.readlink(f"/proc/{entry}/ns/pid") == machine:
                os.kill(int(entry), signal.SIGKILL)


def sockets(lab) -> list[str]:
    """By place; of a service or agent that has not ended by itself."""
    folders = {place: Path(lab.plan.runtime_folder(place)) for place in (*lab.plan.nodes, "node1-dpu", "node2-dpu")}
    return [place for place, folder in folders.items() if folder.exists() and any(folder.iterdir())]


@pytest.mark.parametrize(
    "act, mode, left",
    [pytest.param(cut, "idle", [], marks=pytest.mark.nightly), (cut, "busy", []), (reboot, "busy", ["node1-dpu"])],
)
@pytest.mark.parametrize("mpi", (mpis.OPENMPI, mpis.MPICH))
def test_a_dpu_is_out_of_reach(machines, mpi, act, mode, left, tmp_path):
    program = paths().prefix / "tests" / "interpose" / mpi / "lost"
    require(program)
    try:
        with meanwhile(tmp_path, lambda: act(machines)) as variables:
            env = ENVIRONMENT | variables
            result = machines.mpirun(mpi, 1, [str(program), mode], offload=True, env=env, timeout=LIMIT_S)
    finally:
        heal(machines)
    assert result.returncode == 0 and "after the loss: ok" in result.stdout, result.stderr + result.stdout
    assert sum(rank["offloaded_count"] for rank in result.stats) > 0, result.stats
    # Whoever noticed first: its host, or the other DPU
    told = r"the service on host node(1 gave no sign of life|\d lost the connection|\d heard nothing)"
    said = closing_line.closing_line(result.stats, mpi)
    assert re.search(told, result.stderr) and re.search(told, said), result.stderr + said
    assert sockets(machines) == left  # what was left by the test before is gone, too
