# SPDX-License-Identifier: BSD-3-Clause
"""`offpath run` as on a cluster: mpirun on one machine, nodes that share the working directory and nothing else."""

import json
import os
import tempfile

from conftest import LIMIT_S, ROOT, captured, requires_root, succeeded
from lab_support import POLICY, ROUNDS, SHORTS
from offpath.base.paths import built, paths
from offpath.lab import launchers
from offpath.launch import mpis
from offpath.launch.local import native_environment

pytestmark = requires_root


def at_head(lab, mpi, program, command, folder, **changes):
    """Runs it on the head, with nothing set but what that cluster's MPI needs."""
    env = os.environ | launchers.native_variables(mpi, lab.plan, False) | native_environment(mpi, False)
    env |= {"OFFPATH_LAB": lab.name, "OFFPATH_LAB_SHARED": str(program.parent), "OFFPATH_UCX_TLS": "tcp,self"}
    if mpi == mpis.MPICH:
        env |= {"LD_PRELOAD": str(built(paths().yield_library)), "OFFPATH_LAB_YIELD": "0"}
    return captured(lab.inside("head", command), cwd=folder, env=env | changes)


def mpirun(lab, mpi):
    return launchers.mpirun_command(mpi, lab.plan, 1, 2)


RUN = [str(ROOT / "offpath"), "run", "--share", "--policy", POLICY]
PROFILE = [str(ROOT / "offpath"), "profile"]


def test_all_nodes_are_counted_and_recorded(lab, traced, tmp_path):
    """Also with the folder of the login node's session in the environment, which the nodes do not have."""
    mpi, argv = traced
    command = [*RUN, "--summary", "--trace", "t.json", "--", *mpirun(lab, mpi), str(argv)]
    result = succeeded(at_head(lab, mpi, argv, command, tmp_path, XDG_RUNTIME_DIR="/run/user/4711"))
    assert f"2 ranks on 2 nodes ({mpis.TITLES[mpi]})" in result.stderr, result.stderr
    assert f"{2 * ROUNDS} collectives, {2 * ROUNDS} offloaded" in result.stderr, result.stderr
    one_sided = 2 * ROUNDS * (2 + SHORTS)
    assert f"{one_sided} one-sided operations, {one_sided} offloaded" in result.stderr, result.stderr
    ranks = json.loads((tmp_path / "t.json").read_text())["offpath"]["ranks"]
    assert [rank[0]["host"] for rank in ranks] == ["node1", "node2"]
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]


def test_nodes_may_start_offpath_run_themselves(lab, traced, tmp_path):
    mpi, argv = traced
    result = succeeded(at_head(lab, mpi, argv, [*mpirun(lab, mpi), *RUN, "--", str(argv)], tmp_path))
    assert f"2 ranks on 2 nodes ({mpis.TITLES[mpi]})" in result.stderr, result.stderr
    assert result.stderr.count("offpath:") == 1 and list(tmp_path.iterdir()) == []


def test_a_folder_that_no_node_sees_stops_nobody(lab, traced, tmp_path):
    mpi, argv = traced
    with tempfile.TemporaryDirectory(dir="/tmp") as hidden:  # each node has another /tmp
        for command in ([*RUN, "--trace", f"{hidden}/file"], [*PROFILE, "-o", f"{hidden}/file"]):
            result = at_head(lab, mpi, argv, [*command, "--", *mpirun(lab, mpi), str(argv)], tmp_path)
            assert "no rank recorded anything" in result.stderr, result.stderr
            assert "run" not in command or ("2 ranks on 2 nodes" in result.stderr and result.returncode == 0)
            assert os.listdir(hidden) == []


def test_nodes_that_share_the_runtime_folder_have_a_service_each(lab, traced, tmp_path):
    mpi, argv = traced
    env = {"OFFPATH_POLICY": POLICY, "OFFPATH_RUNTIME_DIR": str(tmp_path / "run")}
    result = succeeded(lab.mpirun(mpi, 1, [str(argv)], offload=True, env=env, timeout=LIMIT_S))
    assert all(rank["offloaded_count"] == ROUNDS for rank in result.stats), result.stats
    assert len({rank["service_pid"] for rank in result.stats}) == 2


def test_what_the_users_environment_sets_of_open_mpi_holds_with_and_without_offpath(lab, tmp_path, monkeypatch):
    """So `offpath tune` compares with the MPI as it is used, such as with its own progress thread."""
    monkeypatch.setenv("OMPI_MCA_btl_tcp_progress_thread", "1")
    for offload in (False, True):
        result = lab.mpirun(mpis.OPENMPI, 1, ["printenv", "OMPI_MCA_btl_tcp_progress_thread"], offload, {}, LIMIT_S)
        assert result.returncode == 0 and result.stdout.split() == ["1", "1"], result.stderr
