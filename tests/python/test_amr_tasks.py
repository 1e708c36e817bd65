# SPDX-License-Identifier: BSD-3-Clause
"""amr with a task for each patch: the bits of the ranks' own patches, and one line where there is no service."""

import json
import re

import pytest
from bench_support import mpirun, program
from conftest import ROOT, offpath, requires_root, succeeded

GUIDE = ROOT / "docs" / "guide-amr.md"
COMMON = ("--across", "9", "--down", "2", "--cells", "4", "--steps", "40", "--case", "wave")


def run(mpi, np, folder, *arguments):
    file = folder / "out.json"
    result = mpirun(mpi, np, program("apps", mpi, "amr_tasks"), *COMMON, *arguments, "--json", str(file))
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stdout + result.stderr
    return json.loads(file.read_text())


@pytest.mark.parametrize(("mpi", "np"), [("mpich", 1), ("openmpi", 3)])
def test_tasks_have_the_same_water(mpi, np, tmp_path, monkeypatch):
    monkeypatch.setenv("OFFPATH_SERVICE_SHARE", "1")
    own = run(mpi, np, tmp_path)
    tasks = run(mpi, np, tmp_path, "--patches", "tasks")
    assert tasks["patches_by"] == "tasks" and tasks["bits"] == own["bits"]
    assert len(tasks["loads_s"]) == 10 and all(load > 0 for stretch in tasks["loads_s"] for load in stretch)


def test_without_a_service_there_is_one_line(monkeypatch):
    monkeypatch.setenv("OFFPATH_SERVICE_PATH", "/nowhere/offpathd")
    result = mpirun("mpich", 2, program("apps", "mpich", "amr_tasks"), *COMMON, "--patches", "tasks")
    assert result.returncode != 0 and result.stdout == ""
    assert len([line for line in result.stderr.splitlines() if line.startswith("amr: ")]) == 1


def test_the_commands_of_the_guide(monkeypatch, tmp_path):
    monkeypatch.setenv("OFFPATH_SERVICE_SHARE", "1")
    command = re.compile(r"^    (?:\w+=1 )?mpirun -np (\d) build/release/apps/(\w+)/(\w+) (.*)$", re.MULTILINE)
    lines = command.findall(GUIDE.read_text())
    assert [name for _, _, name, _ in lines] == ["amr", "amr", "amr_tasks", "amr"]
    for np, mpi, name, arguments in lines:
        arguments = arguments.replace("build/amr.json", str(tmp_path / "amr.json"))
        result = mpirun(mpi, int(np), program("apps", mpi, name), *arguments.split())
        assert result.returncode == 0 and "verified: yes" in result.stdout, result.stdout + result.stderr
    planned = offpath("plan", "balance", "--report", str(tmp_path / "amr.json"))
    assert planned.returncode == 0 and "balanced, at most" in planned.stdout, planned.stderr


@requires_root
@pytest.mark.nightly
def test_the_benchmark_finds_the_same_bits_in_a_lab(tmp_path):
    file = tmp_path / "bench.json"
    succeeded(offpath("bench", "amr", "--steps", "20", "--work", "1", "--runs", "1", "--json", str(file)))
    rows = {row["variant"]: row for row in json.loads(file.read_text())["rows"]}
    assert set(rows) == {"own", "static", "balanced"} and rows["own"]["imbalance"] > 1.2
