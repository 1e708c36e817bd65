# SPDX-License-Identifier: BSD-3-Clause
"""The real thing in a lab: unmodified programs, services in their own namespaces, both MPIs, and services that die."""

import os
import signal
import uuid

import pytest
from conftest import LIMIT_S, MPIS, captured, requires_root, succeeded
from loss_support import meanwhile, services, stop
from offpath.base.paths import paths
from offpath.lab import Lab

pytestmark = requires_root
EVERYTHING = {"OFFPATH_POLICY": "ialltoall:0-inf:dpu,ialltoallv:dpu"}


@pytest.fixture(scope="module", params=(2, 4), ids=lambda nodes: f"{nodes}nodes")
def lab(request):
    with Lab(nodes=request.param, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:
        yield lab


@pytest.mark.parametrize("ppn", (1, 2))
@pytest.mark.parametrize("mpi", MPIS)
def test_every_byte_arrives(lab, mpi, ppn):
    bench = paths().bench / mpi / "collectives"
    argv = [str(bench), "--verify", "--repeats", "1", "--warmup", "0", "--work-ns"]
    wires = ({}, {"OFFPATH_FABRIC_SECURITY": "encrypt"}) if ppn == 1 else ({}, {"OFFPATH_FABRIC": "ucx"})
    for extra, wire in zip(
        (
            ["1000,1000,1000", "--sizes", "2,1000,300000"],
            ["1000", "--sizes", "70000", "--collective", "ialltoallv"],
        ),
        wires,
    ):
        result = succeeded(lab.mpirun(mpi, ppn, [*argv, *extra], offload=True, env=EVERYTHING | wire, timeout=LIMIT_S))
        assert len(result.stats) == ppn * lab.plan.node_count
        assert all(rank["offloaded_count"] > 0 and rank["failed_count"] == 0 for rank in result.stats)
        assert all(rank["pulled_bytes"] > 0 for rank in result.stats), "nothing crossed the wire"
        assert ppn == 1 or all(rank["local_bytes"] > 0 for rank in result.stats), "nothing stayed in the node"


@pytest.mark.parametrize("mpi", MPIS)
def test_the_fft_is_the_same(lab, mpi, tmp_path):
    checksums = []
    for offload in (False, True):
        out = tmp_path / f"{offload}.json"
        argv = [str(paths().apps / mpi / "fft3d"), "--n", "36", "--repeats", "2", "--json", str(out)]
        result = lab.mpirun(mpi, 1, argv, offload=offload, env=EVERYTHING if offload else {}, timeout=LIMIT_S)
        assert result.returncode == 0, result.stderr
        checksums.append(out.read_text().split('"checksum"')[1].split(",")[0])
    assert checksums[0] == checksums[1]


@pytest.mark.parametrize("mode", ("idle", "busy"))
@pytest.mark.parametrize("mpi", MPIS)
def test_a_service_of_one_node_is_killed(lab, mpi, mode, tmp_path):
    """Idle or with operations under way: right data on every rank, no error, and nobody hangs."""
    if lab.plan.node_count != 2:
        pytest.skip("once is enough")
    program = paths().prefix / "tests" / "interpose" / mpi / "lost"
    with meanwhile(tmp_path, lambda: os.kill(services(tmp_path)[0], signal.SIGKILL)) as variables:
        result = lab.mpirun(mpi, 1, [str(program), mode], offload=True, env=EVERYTHING | variables, timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr + result.stdout
    assert result.stderr.count("was lost") == 1, result.stderr
    assert sum(rank["failed_count"] for rank in result.stats) == 0, result.stderr


@pytest.mark.parametrize("which", (0, -1))
@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_that_block_in_native_calls_answer_when_a_service_is_lost(lab, mpi, which, tmp_path):
    """Nobody gives up within this test, so one that is not answered makes it fail."""
    if lab.plan.node_count != 2:
        pytest.skip("once is enough")
    program = paths().prefix / "tests" / "interpose" / mpi / "lost_blocked"
    halt, kill = tmp_path / "halt", tmp_path / "kill"
    halt.mkdir(), kill.mkdir()

    def service():
        return sorted(services(halt))[which]

    with (
        meanwhile(halt, lambda: stop(service())) as variables,
        meanwhile(kill, lambda: os.kill(service(), signal.SIGKILL)) as later,
    ):
        env = EVERYTHING | variables | {name.replace("LOST", "KILL"): path for name, path in later.items()}
        env |= {"OFFPATH_MPI_LOSS_TIMEOUT_MS": "600000"}
        argv = [str(program), str(tmp_path), "8"]
        result = lab.mpirun(mpi, 2, argv, offload=True, env=env, timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr + result.stdout
    assert "while blocked: ok" in result.stdout and "later ones: ok" in result.stdout, result.stdout
    assert "in time" not in result.stderr and result.stderr.count("was lost") == 1, result.stderr


@pytest.mark.parametrize("mpi", MPIS)
def test_random_programs_go_on_when_a_service_is_killed(lab, mpi, tmp_path):
    """The ranks wait for each other in all kinds of calls. Nobody gives up within this test."""
    if lab.plan.node_count != 2:
        pytest.skip("once is enough")
    program = paths().bench_program("faults", mpi)
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with meanwhile(folder, lambda: os.kill(sorted(services(folder))[seed % 2], signal.SIGKILL)) as variables:  # noqa: B023
            env = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_MPI_LOSS_TIMEOUT_MS": "600000"} | variables
            argv = [program, "--seed", seed, "--ready", variables["LOST_READY"], "--until", variables["LOST_GO"]]
            result = lab.mpirun(mpi, 2, list(map(str, argv)), offload=True, env=env, timeout=LIMIT_S)
        said = f"seed {seed}: {result.stdout}{result.stderr}"
        assert result.returncode == 0 and "verified: yes" in result.stdout, said


def test_nothing_is_left(lab):
    listing = captured(["pgrep", "-a", "-x", "offpathd"]).stdout
    assert lab.name not in listing
