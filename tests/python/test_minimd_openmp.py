# SPDX-License-Identifier: BSD-3-Clause
"""minimd with target regions as the other side: the host's results, whatever the schedule and the number of ranks."""

import json

import pytest
from bench_support import mpirun, program
from openmp_support import missing_compiler, requires
from test_openmp_mpi import start

pytestmark = requires(missing_compiler())
COMMON = ("--cells", 8, "--steps", 24, "--every", 4, "--thermo", 8, "--guard", "on")


def run(mpi, np, folder, *arguments, devices="local"):
    file = folder / "out.json"
    env = {"OFFPATH_DEVICES": devices, "OMP_TARGET_OFFLOAD": "mandatory", "KMP_BLOCKTIME": "0"}
    argv = [program("apps", mpi, "minimd_openmp"), *COMMON, *arguments, "--json", file]
    result = start(mpi, np, argv, env)
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stderr
    return json.loads(file.read_text())


def assert_same(one, other):
    for row, expected in zip(one["thermo"], other["thermo"]):
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("mpi", "np"), [("mpich", 1), ("openmpi", 2), ("mpich", 3), ("openmpi", 4)])
def test_off_path_and_hybrid_are_the_relaxed_schedule(mpi, np, tmp_path):
    relaxed = run(mpi, np, tmp_path, "--schedule", "relaxed")
    off_path = run(mpi, np, tmp_path, "--schedule", "offpath")
    # The same sums in the same order, on whichever side they are made.
    assert off_path["thermo"] == relaxed["thermo"]
    assert off_path["relaxed"] == off_path["rebuilds"] == 6
    assert off_path["other_side_count"] == {"all": 6, "share": 0, "ship": 6}
    assert off_path["shipped_bytes"] > 4 * 30 * 2048 * 6 / np
    hybrid = run(mpi, np, tmp_path, "--schedule", "hybrid", "--share", 40, devices="one=local,two=local")
    assert_same(hybrid, relaxed)
    assert hybrid["shared_steps"] == hybrid["other_side_count"]["share"] > 0
    assert hybrid["other_side_count"]["all"] == 6


def test_threads_of_the_dpu_and_a_share_that_is_found_out(tmp_path):
    relaxed = run("mpich", 1, tmp_path, "--schedule", "relaxed")
    hybrid = run("mpich", 1, tmp_path, "--schedule", "hybrid", "--dpu-threads", 3, "--dpu-repeats", 2)
    assert_same(hybrid, relaxed)
    assert 0.01 < hybrid["share"] < 0.99


def test_the_guard_falls_back_with_lists_on_their_way(tmp_path):
    hybrid = run("mpich", 2, tmp_path, "--schedule", "hybrid", "--every", 20, "--skin", "0.1")
    exact = run("mpich", 2, tmp_path, "--schedule", "host", "--every", 1)
    assert hybrid["guard_hits"] >= 5
    assert_same(hybrid, exact)


def test_what_is_missing_is_one_line(tmp_path):
    """Regions of several ranks without the interposer, and no device."""
    argv = [program("apps", "mpich", "minimd_openmp"), *COMMON, "--schedule", "offpath"]
    missing = start("mpich", 2, argv, {"OFFPATH_DEVICES": "local"}, preload=False)
    assert missing.returncode != 0 and "offpath run" in missing.stderr
    missing = start("mpich", 2, argv, {"OFFPATH_DEVICES": "none"})
    assert missing.returncode != 0 and "offpath devices" in missing.stderr
    plain = mpirun("mpich", 1, program("apps", "mpich", "minimd"), *map(str, argv[1:]))
    assert plain.returncode != 0 and "minimd_openmp" in plain.stderr
