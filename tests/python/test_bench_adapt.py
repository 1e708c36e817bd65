# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench adapt`: what its rows come to, and the program itself."""

import json

import pytest
from bench_support import program
from conftest import LIMIT_S, assert_one_line_error, offpath
from offpath.bench.suite import adapt
from offpath.bench.suite.adapt import AUTO, DPU, HOST
from offpath.launch import local
from offpath.places.comparison import Launch


def launch_with(auto):
    """Two phases of each kind; `auto`: what a turn took in them."""
    fixed = {"hides": {HOST: 1600, DPU: 1200}, "talks": {HOST: 400, DPU: 900}}
    times = dict(zip(("hides", "talks"), auto, strict=True))
    phases = [
        {"phase": name, "turn_ns": fixed[name] | {AUTO: times[name]}, "verified": True}
        for name in ("hides", "talks") * 2
    ]
    return Launch({"phases": phases, "work_iterations": 1}, [], None)


def rows(auto, runs=1):
    return adapt.rows_of("openmpi", 1 << 20, [launch_with(auto)] * runs)


def test_rows_compare_with_the_better_fixed_choice():
    found = {(row["phase"], row["peer"]): row for row in rows((1220, 410), runs=3)}
    assert found["hides", HOST]["over_best"] == pytest.approx(1600 / 1200)
    assert found["talks", DPU]["over_best"] == pytest.approx(900 / 400)
    assert found["talks", AUTO]["over_best"] == pytest.approx(1.025)
    assert found["all", AUTO]["turn_ns"] == 815
    assert found["all", AUTO]["over_best"] == pytest.approx(815 / 1000)
    assert found["all", AUTO]["runs"] == 3


def checks_of(found):
    return adapt.BENCHMARK.checks({"meta": {}, "rows": found})


@pytest.mark.parametrize(
    ("auto", "is_met"),
    [((1220, 410), True), ((1280, 410), False), ((1200, 430), False), ((1600, 400), False)],
)
def test_what_is_asked(auto, is_met):
    checks = checks_of(rows(auto))
    assert [each["name"] for each in checks] == ["openmpi/adapt_phase_ratio", "openmpi/adapt_overall_ratio"]
    assert all(each["met"] for each in checks) == is_met


def test_without_a_launch_there_are_no_rows():
    assert adapt.rows_of("mpich", 1024, []) == []
    assert checks_of([]) == []


@pytest.mark.machine
@pytest.mark.machine
@pytest.mark.parametrize("mpi", ("openmpi", "mpich"))
def test_the_program_runs_and_checks_its_data(mpi, tmp_path):
    out = tmp_path / "out.json"
    argv = [str(program("bench", mpi, "adapt")), "--turns", "3", "--phases", "3", "--bytes", "1000", "--messages", "2"]
    result = local.local_mpirun(mpi, 2, [*argv, "--work-iterations", "10", "--json", str(out)], timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr
    written = json.loads(out.read_text())
    assert [each["phase"] for each in written["phases"]] == ["hides", "talks", "hides"]
    assert all(each["verified"] and min(each["turn_ns"].values()) > 0 for each in written["phases"])
    assert written["work_iterations"] == 10
    bad = local.local_mpirun(mpi, 1, [argv[0], "--turns", "0"], timeout=LIMIT_S)
    assert bad.returncode != 0 and "adapt: --turns '0' is not usable" in bad.stderr


def test_bad_arguments_are_one_line():
    assert_one_line_error(offpath("bench", "adapt", "--mpi", "x"), "'x' is not an MPI")
    assert_one_line_error(offpath("bench", "adapt", "--size", "much"), "much")
