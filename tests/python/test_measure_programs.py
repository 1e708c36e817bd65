# SPDX-License-Identifier: BSD-3-Clause
"""tools/measure_programs.py, measure_functions.py and kill_programs.py, which measure programs that mostly others
wrote, and kill their services, for docs/performance/as-they-are.md and faults.md; every night they run."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from conformance_support import MPIS
from conftest import ROOT, captured, requires_root, succeeded
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench.kit import Case

RESULTS = [
    json.loads((ROOT / "docs" / "figures" / "results" / f"{name}.json").read_text())
    for name in ("foreign-programs", "foreign-programs-mpich", "functions")
]
sys.path.insert(0, str(ROOT / "tools"))

import foreign_programs  # noqa: E402
import kill_programs  # noqa: E402
import measure_functions  # noqa: E402
import measure_programs  # noqa: E402

PROGRAMS = foreign_programs.PROGRAMS
NIGHTLY = (ROOT / "tools" / "packages" / "nightly.txt").read_text()


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result["benchmark"])
def test_the_document_has_its_command(result):
    python, script, *options = shlex.split(result["command"])
    assert python == ".venv/bin/python" and (ROOT / script).is_file()
    helped = captured([sys.executable, ROOT / script, "--help"], check=True).stdout
    assert all(option in helped for option in options if option.startswith("--"))
    assert {row["program"] for row in result["rows"]} <= set(PROGRAMS)


def test_programs_are_many_and_each_is_checked():
    assert len(PROGRAMS) >= 25
    folders = {folder.name for folder in foreign_programs.LIST.parent.iterdir() if folder.is_dir()}
    assert folders <= set(PROGRAMS)
    for program in PROGRAMS.values():
        assert re.compile(program.results).groups and re.compile(program.seconds).groups in (0, 1), program.name
        assert re.compile(program.says, re.MULTILINE) and set(program.mpis) <= {"openmpi", "mpich"}, program.name
        assert all(program.filled(program.run, mpi) for mpi in program.mpis)


def test_what_debian_has_of_them_is_installed():
    packages = {line.partition(" ")[0] for list in ("build", "test", "nightly") for line in
                (ROOT / "tools" / "packages" / f"{list}.txt").read_text().splitlines()}  # fmt: skip
    sources = {name for program in PROGRAMS.values() for name in program.source.split(", ")}
    with_petsc = {"libmumps-dev", "libsuperlu-dist-dev"}
    others = with_petsc | {"this project", "PyPI", "hypre", "its source"}
    assert sources - others <= packages


@pytest.mark.parametrize(("ours", "theirs", "alike"), (
    (["-5.5 1e-3"], ["-5.5 1e-3"], True),
    ([("-5.5", "-4.25")], [("-5.5", "-4.26")], False),
    (["-5.5", "-4.25"], ["-5.5"], False),
    (["315a0c"], ["315a0d"], False),
    (["1.0000000001"], ["1.0"], True),
    (["nan"], ["1.0"], False),
))  # fmt: skip
def test_results_that_differ_are_wrong(ours, theirs, alike):
    assert foreign_programs.same(ours, theirs, 1e-8) == alike


def launches(name, seconds, results=("1.0",)):
    case = Case({"setting": name}, None)
    case.launches = [
        {"seconds": each, "whole_s": each, "results": list(results), "setting": name, "offloaded": 0, "failed": 0,
         "said": "nothing"} for each in seconds
    ]  # fmt: skip
    return case


def a_row(default, best=(1.0, 1.01, 1.02), results=("1.0",)):
    tried = [launches(each.name, [1.0]) for each in measure_programs.OTHERS]
    cases = [
        launches(measure_programs.ALONE, (1.0, 1.01, 1.02)), launches(measure_programs.DEFAULTS, default, results),
        *tried, launches(measure_programs.BEST, best), launches(measure_programs.AGAIN, (1.0, 1.01, 1.03)),
    ]  # fmt: skip
    return measure_programs.row(PROGRAMS["lammps"], cases)


def test_slower_is_what_is_longer_and_not_by_chance():
    assert a_row((1.05, 1.06, 1.07))["slower"]
    assert not a_row((1.0, 1.06, 1.015))["slower"]
    assert not a_row((1.0, 1.01, 1.02))["slower"] and a_row((1.0, 1.01, 1.02))["verified"]
    assert not a_row((1.0, 1.01, 1.02), results=("1.1",))["verified"]


def test_behind_is_what_gains_less_than_the_best():
    assert a_row((1.0, 1.01, 1.02), best=(0.7, 0.71, 0.72))["behind"]
    assert not a_row((0.7, 0.71, 0.72), best=(0.7, 0.71, 0.72))["behind"]
    assert not a_row((1.0, 1.01, 1.02), best=(1.5, 1.6, 1.7))["behind"]


def test_chance_is_that_of_ranks():
    assert measure_programs.chance([7, 8, 9], [1, 2, 3, 4, 5, 6]) == pytest.approx(1 / 84)
    assert measure_programs.chance([1, 1, 1], [1, 1, 1]) == 1


def test_what_was_offloaded_is_said_in_few_words():
    said = "9 collectives, 0 offloaded, 9 native (9 blocking); 4 messages, 1 offloaded (2.0 MiB), 3 native (3 shorter)"
    short = "9 collectives native (blocking); 4 messages, 1 offloaded (2.0 MiB), 3 native (3 shorter)"
    assert measure_programs.shortened(said) == short


def test_functions_that_take_long_have_a_row_each():
    def case(setting, **functions):
        made = launches(setting, (2.0, 2.0, 2.0))
        made.launches = [each | {"functions": Counter(functions)} for each in made.launches]
        return made

    many = {f"MPI_{i}": 0.001 for i in range(9)}
    alone = case("alone", MPI_Wait=1.0, MPI_Bcast=0.25, **many)
    cases = [alone, case("defaults", MPI_Wait=0.25), case("everything", MPI_Test=0.5)]
    rows = measure_functions.rows(PROGRAMS["lammps"], cases)
    found = {row["function"]: (row["alone"], row["defaults"], row["everything"]) for row in rows}
    assert found["the program"] == (2, 2, 2) and found["all recorded calls"] == (pytest.approx(1.259), 0.25, 0.5)
    assert list(found)[2:5] == ["MPI_Wait", "MPI_Test", "MPI_Bcast"] and found["MPI_Wait"] == (1, 0.25, 0)
    assert sum(times[0] for name, times in found.items() if name != "the program") == pytest.approx(2 * 1.259)
    assert all(row["verified"] for row in rows)


def test_what_was_measured_under_other_conditions_is_not_added_to(tmp_path):
    file = tmp_path / "out.json"
    conditions = {"mpi": "openmpi", "nodes": 2, "ppn": 2, "rate": "1gbit", "runs": 3}
    file.write_text(json.dumps({"meta": conditions, "rows": []}))
    with pytest.raises(UserError, match="other conditions"):
        measure_programs.measure(json_file=file, mpi="openmpi", nodes=2, ppn=1, rate="1gbit", runs=3)


def need(name):
    if not shutil.which(PROGRAMS[name].argv("openmpi")[0]) and PROGRAMS[name].source in NIGHTLY:
        pytest.skip(f"{name} is not installed (tools/setup nightly does it)")
    if not paths().backend_library("openmpi").exists():
        pytest.skip("not built for Open MPI")


def test_what_became_of_a_program_whose_service_was_killed():
    verdict = kill_programs.Killed.verdict
    assert verdict(["-1.5"], True, "") == "right"
    assert verdict(["-1.5"], False, "") == verdict([], False, "") == "wrong"
    assert verdict([], False, "Offpath: the service was lost") == "error"
    assert verdict([], False, "Segmentation fault") == "wrong"


@pytest.mark.nightly
@pytest.mark.machine
@requires_root
@pytest.mark.parametrize("name", kill_programs.USUALLY)
def test_killed_services_change_nothing(name, tmp_path):
    need(name)
    file = tmp_path / "out.json"
    options = ("--kills", "3", "--programs", name, "--json", str(file))
    succeeded(captured([sys.executable, kill_programs.__file__, *options], timeout=None))
    (row,) = json.loads(file.read_text())["rows"]
    assert row["right_count"] == 3


@pytest.mark.nightly
@pytest.mark.machine
@requires_root
def test_where_its_time_goes_is_said(tmp_path):
    need("fft3d")
    file = tmp_path / "out.json"
    options = ("fft3d", "--runs", "1", "--json", str(file))
    done = subprocess.run([sys.executable, measure_functions.__file__, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {row["function"]: row for row in json.loads(file.read_text())["rows"]}
    whole, calls = rows["the program"], rows["all recorded calls"]
    assert all(0 < calls[name] < whole[name] for name in measure_functions.SETTINGS) and whole["verified"]
    assert rows["MPI_Ialltoallv"]["alone"] > 0


@pytest.mark.nightly
@pytest.mark.machine
@requires_root
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_computes_the_same_with_all_settings(name, mpi, tmp_path):
    if mpi not in PROGRAMS[name].mpis:
        pytest.skip("there is none for this MPI")
    need(name)
    subprocess.run([ROOT / "tools" / "setup", "--programs"], check=True, capture_output=True)
    file = tmp_path / "out.json"
    options = ("--runs", "1", "--mpi", mpi, "--programs", name, "--json", str(file))
    succeeded(captured([sys.executable, measure_programs.__file__, *options], timeout=None))
    (row,) = json.loads(file.read_text())["rows"]
    assert row["verified"] and all(row["others"].values()), row


def test_what_a_reader_has_before_him_is_counted():
    """Of the working tree; every file of code belongs to a capability."""
    told = captured([ROOT / "tools" / "sums"], check=True).stdout
    counts = {line[:42].strip(): int(line[42:].replace(",", "")) for line in told.splitlines()[1:]}
    parts = [count for name, count in counts.items() if name.startswith("lines: ")]
    assert counts["lines of the product"] == sum(parts) - counts["lines: tests"] > 50_000
    assert counts["lines: other code"] == 0 and min(count for count in parts if count) > 100
