# SPDX-License-Identifier: BSD-3-Clause
"""bspmm with a task for each product of tiles: the bits of the ranks' own products, by one service."""

import json
import re

import pytest
from bench_support import mpirun, program
from conftest import offpath, requires_root, succeeded
from offpath.base.paths import paths
from offpath.launch import stats
from offpath.launch.local import local_mpirun
from test_bspmm import SETTINGS

SMALL = ("--tile", "21", "--tiles", "6", "--repeats", "2", "--check")
OSC = dict(setting.split("=") for setting in SETTINGS)


@pytest.fixture(autouse=True)
def shared_cores(monkeypatch):
    monkeypatch.setenv("OFFPATH_SERVICE_SHARE", "1")


def run(mpi, np, folder, *arguments):
    """What it says, and what rank 0 has of A, B and C."""
    file, field = folder / "out.json", folder / "field"
    argv = [*SMALL, *arguments, "--json", str(file), "--field", str(field)]
    result = mpirun(mpi, np, "env", *SETTINGS, str(program("apps", mpi, "bspmm_tasks")), *argv)
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stdout + result.stderr
    return json.loads(file.read_text()), field.read_bytes()


@pytest.mark.parametrize("variant", ["blocking", "nonblocking"])
@pytest.mark.parametrize(("mpi", "np"), [("mpich", 1), ("openmpi", 3)])
def test_tasks_have_the_same_product(mpi, np, variant, tmp_path):
    """One rank makes all of a C tile, so that its bits do not depend on who comes first."""
    own, expected = run(mpi, np, tmp_path, "--variant", variant, "--unit", "0")
    tasks, found = run(mpi, np, tmp_path, "--variant", variant, "--unit", "0", "--products", "tasks")
    assert found == expected and any(expected)
    assert (own["products_by"], tasks["products_by"]) == ("own", "tasks")
    assert tasks["t_compute_s"] > 0 and tasks["rank_cpu_s"] > 0


@pytest.mark.parametrize("unit", ["1", "2"])
def test_tiles_of_c_that_several_ranks_make(unit, tmp_path):
    tasks, _ = run("mpich", 3, tmp_path, "--unit", unit, "--products", "tasks")
    assert tasks["error"] <= 1


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_tasks_are_those_of_the_service_that_communicates(mpi, tmp_path):
    """Ranks and tasks have one service, which is started once."""
    started, service = tmp_path / "started", tmp_path / "offpathd"
    service.write_text(f'#!/bin/sh\necho one >>{started}\nexec {paths().service} "$@"\n')
    service.chmod(0o755)
    file = tmp_path / "out.json"
    argv = [str(program("apps", mpi, "bspmm_tasks")), *SMALL, "--products", "tasks", "--json", str(file)]
    env = OSC | {"OFFPATH_POLICY": "window:dpu", "OFFPATH_SERVICE_PATH": str(service)}
    result = local_mpirun(mpi, 2, argv, True, env, 60)
    assert result.returncode == 0 and json.loads(file.read_text())["verified"], result.said
    assert all(rank["windows"]["operations_count"] > 0 for rank in result.stats)
    assert stats.cost(result.stats).services_ns > 0 and started.read_text() == "one\n"


def test_without_tasks_or_a_service_there_is_one_line(monkeypatch):
    monkeypatch.setenv("OFFPATH_SERVICE_PATH", "/nowhere/offpathd")
    for name in ("bspmm", "bspmm_tasks"):
        result = mpirun("mpich", 2, program("apps", "mpich", name), *SMALL, "--products", "tasks")
        assert result.returncode != 0 and result.stdout == ""
        assert len(re.findall("^bspmm: .*$", result.stderr, re.MULTILINE)) == 1


@requires_root
@pytest.mark.nightly
def test_the_benchmark_compares_all_ways_in_a_lab(tmp_path):
    file = tmp_path / "bench.json"
    small = ("--tile", "32", "--tiles", "4", "--mpi", "mpich", "--runs", "1", "--repeats", "1")
    succeeded(offpath("bench", "bspmm", *small, "--json", str(file)))
    rows = json.loads(file.read_text())["rows"]
    assert [row["way"] for row in rows] == ["host", "communication", "products", "both"]
    assert rows[0]["gain"] == 1 and all(row["verified"] and row["over_longer"] > 0 for row in rows)
