# SPDX-License-Identifier: BSD-3-Clause
"""tools/measure_programs.py and kill_programs.py, which measure LAMMPS and CP2K, and kill their services, for
docs/performance/programs.md and faults.md; every night they run."""

import json
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, requires_root
from offpath.base.paths import paths

RESULT = json.loads((ROOT / "docs" / "figures" / "results" / "foreign-programs.json").read_text())
sys.path.insert(0, str(ROOT / "tools"))

import kill_programs  # noqa: E402
import measure_programs  # noqa: E402


def test_the_document_has_its_command():
    python, script, *options = shlex.split(RESULT["command"])
    assert python == ".venv/bin/python" and (ROOT / script).is_file()
    helped = subprocess.run(
        [sys.executable, ROOT / script, "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert all(option in helped for option in options if option.startswith("--"))
    assert [row["setting"] for row in RESULT["rows"]] == [each.name for each in measure_programs.SETTINGS]
    packages = (ROOT / "tools" / "packages" / "nightly.txt").read_text().splitlines()
    assert {"lammps", "cp2k"} <= {line.partition(" ")[0] for line in packages}


def test_energies_that_differ_are_wrong():
    found = {"seconds": 1.0, "offloaded": 0, "energies": [("-5.5", "-4.25"), ("-5.5", "-4.26")]}
    setting = measure_programs.SETTINGS[1]
    other = found | {"energies": [("-5.5", "-4.25"), ("-5.5", "-4.27")]}
    assert measure_programs.row("lammps", setting, [found], [found])["verified"]
    assert not measure_programs.row("lammps", setting, [found, other], [found])["verified"]
    assert not measure_programs.row("cp2k", setting, [found | {"energies": ["-1.0"]}], [found])["verified"]


def need(name):
    if not shutil.which(measure_programs.PROGRAMS[name].executable):
        pytest.skip(f"{name} is not installed (tools/setup nightly does it)")
    if not paths().backend_library("openmpi").exists():
        pytest.skip("not built for Open MPI")


def test_what_became_of_a_program_whose_service_was_killed():
    verdict = kill_programs.Killed.verdict
    assert verdict(["-1.5"], ["-1.5"], "") == "right"
    assert verdict(["-1.5"], ["-1.6"], "") == verdict([], ["-1.5"], "") == "wrong"
    assert verdict(None, ["-1.5"], "Offpath: the service was lost") == "error"
    assert verdict(None, ["-1.5"], "Segmentation fault") == "wrong"


@pytest.mark.nightly
@pytest.mark.machine
@requires_root
@pytest.mark.parametrize("name", kill_programs.STEPS)
def test_killed_services_change_nothing(name, tmp_path):
    need(name)
    file = tmp_path / "out.json"
    options = ("--kills", "3", "--programs", name, "--json", str(file))
    done = subprocess.run([sys.executable, kill_programs.__file__, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(file.read_text())["rows"]
    assert row["right_count"] == 3


@pytest.mark.nightly
@pytest.mark.machine
@requires_root
@pytest.mark.parametrize("name", measure_programs.PROGRAMS)
def test_it_runs(name, tmp_path):
    need(name)
    file = tmp_path / "out.json"
    options = ("--runs", "1", "--steps", "20,2", "--programs", name, "--json", str(file))
    done = subprocess.run([sys.executable, measure_programs.__file__, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert [row["setting"] for row in rows] == [each.name for each in measure_programs.SETTINGS]
    assert all(row["verified"] and row["seconds"] > 0 for row in rows)
    by_setting = {row["setting"]: row["offloaded_count"] for row in rows}
    assert (
        by_setting["MPI alone"] == by_setting["default policy"] == 0 < by_setting["`*:dpu`, OFFPATH_MPI_BLOCKING=all"]
    )


def test_what_a_reader_has_before_him_is_counted():
    """Of the working tree; every file of code belongs to a capability."""
    told = subprocess.run([ROOT / "tools" / "sums"], capture_output=True, text=True, check=True).stdout
    counts = {line[:42].strip(): int(line[42:].replace(",", "")) for line in told.splitlines()[1:]}
    parts = [count for name, count in counts.items() if name.startswith("lines: ")]
    assert counts["lines of the product"] == sum(parts) - counts["lines: tests"] > 50_000
    assert counts["lines: other code"] == 0 and min(count for count in parts if count) > 100
