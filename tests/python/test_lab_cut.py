# SPDX-License-Identifier: BSD-3-Clause
"""Services that hear nothing of each other, or that hang, while their hosts can talk: the program ends, says why."""

import os
import re
import signal
import subprocess

import pytest
from conftest import LIMIT_S, require, requires_root
from loss_support import meanwhile, services
from offpath.base.paths import paths
from offpath.bench import fault_kills
from offpath.lab.plan import dpu_address, namespace
from offpath.launch import closing_line, mpis

pytestmark = requires_root
SILENCE_MS = 1000
ENVIRONMENT = {"OFFPATH_POLICY": "ialltoall:0-inf:dpu", "OFFPATH_SERVICE_SILENCE_MS": str(SILENCE_MS)}


def deafen(lab, one: int, other: int) -> None:
    """What the DPU of node `one` sends to that of node `other` arrives nowhere; what that one sends, arrives."""
    nowhere = ["lladdr", "02:00:00:00:00:01", "dev", "eth0", "nud", "permanent"]
    neighbour = ["neigh", "replace", dpu_address(other), *nowhere]
    subprocess.run(["ip", "-n", namespace(lab.name, f"node{one}-dpu"), *neighbour], check=True)


def heal(lab) -> None:
    for one, other in ((1, 2), (2, 1)):
        neighbour = ["neigh", "del", dpu_address(other), "dev", "eth0"]
        subprocess.run(["ip", "-n", namespace(lab.name, f"node{one}-dpu"), *neighbour], capture_output=True)


def run(lab, mpi, mode, folder, act):
    program = paths().prefix / "tests" / "interpose" / mpi / "lost"
    require(program)
    try:
        with meanwhile(folder, act) as variables:
            env = ENVIRONMENT | variables
            result = lab.mpirun(mpi, 1, [str(program), mode], offload=True, env=env, timeout=LIMIT_S)
    finally:
        heal(lab)
    assert result.returncode == 0 and "after the loss: ok" in result.stdout, result.stderr + result.stdout
    return result, closing_line.closing_line(result.stats, mpi)


@pytest.mark.parametrize(
    "mode, ways",
    [("idle", ((1, 2), (2, 1))), ("busy", ((1, 2),)), pytest.param("busy", ((2, 1),), marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("mpi", (mpis.OPENMPI, mpis.MPICH))
def test_a_link_between_services_is_cut(lab, mpi, mode, ways, tmp_path):
    """Both ways before anything is under way: all is done natively. One way: errors or right data, and nobody hangs."""
    result, said = run(lab, mpi, mode, tmp_path, lambda: [deafen(lab, *way) for way in ways])
    if mode == "idle":
        assert all(rank["failed_count"] == 0 for rank in result.stats), result.stats
    told = (
        rf"the service on host node(\d) heard nothing of that on host node(?!\1)\d for {SILENCE_MS} ms and gave it up"
    )
    assert len(re.findall(told, result.stderr)) == 1, result.stderr
    assert re.search(told, said) and "OFFPATH_SERVICE_SILENCE_MS" in said, said


@pytest.mark.parametrize("mode", ("idle", "busy"))
@pytest.mark.parametrize("mpi", (mpis.OPENMPI, mpis.MPICH))
def test_connections_between_services_are_reset(lab, mpi, mode, tmp_path):
    """They make others: what comes later is offloaded again."""

    def reset():
        assert any([fault_kills.break_connections(service) for service in services(tmp_path)])

    result, said = run(lab, mpi, mode, tmp_path, reset)
    told = r"the service on host node(\d) lost the connection to that on host node(?!\1)\d \(they make another one"
    assert len(re.findall(told, result.stderr)) == 1 and result.stderr.count("offpath warn") == 1, result.stderr
    assert all(rank["failed_count"] == 0 for rank in result.stats), result.stats
    assert all(rank["offloaded_count"] >= 16 for rank in result.stats), result.stats  # two of three rounds


@pytest.mark.nightly
@pytest.mark.parametrize("mpi", (mpis.OPENMPI, mpis.MPICH))
def test_there_never_was_a_link_between_services(lab, mpi):
    """Connecting has a bound; then each service knows that the other cannot be reached, and says so."""
    program = paths().prefix / "tests" / "interpose" / mpi / "lost"
    require(program)
    deafen(lab, 1, 2)
    deafen(lab, 2, 1)
    try:
        result = lab.mpirun(mpi, 1, [str(program), "idle"], offload=True, env=ENVIRONMENT, timeout=LIMIT_S)
    finally:
        heal(lab)
    assert "failed 0," in result.stdout and "after the loss: ok" in result.stdout, result.stdout + result.stderr
    told = r"the service on host node(\d) lost the connection to that on host node(?!\1)\d"
    assert len(re.findall(told, result.stderr)) == 1 and "network between the services" in result.stderr, result.stderr


@pytest.mark.parametrize("mpi", (mpis.OPENMPI, mpis.MPICH))
def test_a_service_hangs(lab, mpi, tmp_path):
    result, said = run(lab, mpi, "idle", tmp_path, lambda: [os.kill(pid, signal.SIGSTOP) for pid in services(tmp_path)])
    told = rf"the service on host node\d gave no sign of life for {SILENCE_MS} ms and was ended"
    assert 1 <= len(re.findall(told, result.stderr)) <= 2, result.stderr
    assert re.search(told, said) and "OFFPATH_SERVICE_SILENCE_MS" in said, said
