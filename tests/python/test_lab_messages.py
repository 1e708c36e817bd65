# SPDX-License-Identifier: BSD-3-Clause
"""Point-to-point messages between nodes: they go through two services, and only those."""

import subprocess

import pytest
from conftest import LIMIT_S, ROOT, requires_root, succeeded
from offpath.base.paths import paths
from offpath.launch import mpis
from offpath.launch.closing_line import closing_line

pytestmark = requires_root


@pytest.mark.parametrize("mpi", (mpis.OPENMPI, mpis.MPICH))
def test_a_solver_meets_its_solution_with_messages_offloaded(lab, mpi):
    program = paths().app("halo3d", mpi)
    argv = [str(program), "--points", "64", "--variables", "4", "--sweeps", "30"]
    env = {"OFFPATH_POLICY": "*:host,send:4K-inf:nodes=2:dpu"}
    # Two ranks a node: half of the messages stay on their node.
    result = lab.mpirun(mpi, 2, argv, offload=True, env=env, timeout=LIMIT_S)
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stderr
    messages = [rank["messages"] for rank in result.stats]
    sent, received = (sum(one[name] for one in messages) for name in ("offloaded_count", "received_count"))
    assert len(messages) == 4 and sent == received > 0, messages
    assert all(one["failed_count"] == 0 and 0 < one["offloaded_count"] <= 30 for one in messages), messages
    assert f"messages, {sent} offloaded" in closing_line(result.stats, mpi)


def test_long_messages_between_nodes_need_no_setting(lab):
    """At the lab's 1 Gbit/s, and no network is measured faster than it is."""
    argv = [str(paths().app("halo3d", mpis.OPENMPI)), "--points", "96", "--variables", "8", "--sweeps", "8"]
    result = lab.mpirun(mpis.OPENMPI, 1, argv, offload=True, timeout=LIMIT_S)
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stderr
    assert all(rank["messages"]["offloaded_count"] > 0 for rank in result.stats), result.stats


def test_who_sends_several_at_a_time_gets_room_for_them(lab):
    program = paths().bench_program("pt2pt", mpis.MPICH)
    argv = [str(program), "--pattern", "posted_8", "--sizes", "100000,400000", "--work-iterations", "1,1", "--verify"]
    env = {"OFFPATH_POLICY": "*:host,send:4K-inf:dpu"}
    result = succeeded(lab.mpirun(mpis.MPICH, 1, argv, offload=True, env=env, timeout=LIMIT_S))
    for messages in (rank["messages"] for rank in result.stats):
        assert messages["offloaded_count"] > 0 == messages["native_count"], messages


@pytest.mark.parametrize("mpi", (mpis.OPENMPI, mpis.MPICH))
def test_a_halo_exchange_finds_room_by_default_and_memory_goes_after_a_peak(lab, mpi, tmp_path):
    """The program compares what it shares before, at the peak, and a while after it."""
    program = tmp_path / "room"
    source = ROOT / "tests" / "interpose" / "programs" / "messages_room.c"
    subprocess.run([f"mpicc.{mpi}", "-O1", "-w", source, "-o", program], check=True)
    result = lab.mpirun(mpi, 1, [str(program)], offload=True, timeout=LIMIT_S)
    assert result.returncode == 0 and "WRONG" not in result.stdout, result.stdout + result.stderr
    messages = [rank["messages"] for rank in result.stats]
    sent = sum(one["offloaded_count"] for one in messages)
    assert sent > 200 and all(one["native_count"] == 0 for one in messages), messages
    assert f"messages, {sent} offloaded" in closing_line(result.stats, mpi)
