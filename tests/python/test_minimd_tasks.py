# SPDX-License-Identifier: BSD-3-Clause
"""minimd with tasks as the other side: the host's results, and one line where there is no service."""

import json

import pytest
from bench_support import mpirun, program

COMMON = ("--cells", "8", "--steps", "24", "--every", "4", "--thermo", "8", "--guard", "on")


def run(mpi, np, folder, *arguments):
    file = folder / "out.json"
    result = mpirun(mpi, np, program("apps", mpi, "minimd_tasks"), *COMMON, *arguments, "--json", str(file))
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stderr
    return json.loads(file.read_text())


@pytest.mark.parametrize(("mpi", "np"), [("mpich", 1), ("openmpi", 3)])
def test_off_path_and_hybrid_are_the_relaxed_schedule(mpi, np, tmp_path, monkeypatch):
    monkeypatch.setenv("OFFPATH_SERVICE_SHARE", "1")
    relaxed = run(mpi, np, tmp_path, "--schedule", "relaxed")
    off_path = run(mpi, np, tmp_path, "--schedule", "offpath", "--dpu-repeats", "2")
    assert off_path["thermo"] == relaxed["thermo"]  # the same sums in the same order
    assert off_path["relaxed"] == off_path["rebuilds"] == 6 and off_path["other_side"] == "tasks"
    hybrid = run(mpi, np, tmp_path, "--schedule", "hybrid", "--dpu-threads", "3")
    assert hybrid["shared_steps"] == 18
    for row, expected in zip(hybrid["thermo"], relaxed["thermo"]):
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_without_a_service_there_is_one_line(monkeypatch):
    monkeypatch.setenv("OFFPATH_SERVICE_PATH", "/nowhere/offpathd")
    result = mpirun("mpich", 2, program("apps", "mpich", "minimd_tasks"), *COMMON, "--schedule", "offpath")
    assert result.returncode != 0 and result.stdout == ""
    assert len([line for line in result.stderr.splitlines() if line.startswith("minimd: ")]) == 1
