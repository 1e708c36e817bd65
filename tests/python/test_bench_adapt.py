# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench adapt`: what its rows come to, and the program itself."""

import json

import pytest
from bench_support import program
from conftest import LIMIT_S, assert_one_line_error, offpath
from offpath import bench_adapt, launch
from offpath.bench_adapt import AUTO, DPU, HOST, Launches


def phases(hides_ns, talks_ns, verified=True):
    return [
        {"phase": name, "turn_ns": ns, "verified": verified}
        for name, ns in (("hides", hides_ns), ("talks", talks_ns)) * 2
    ]


def rows(auto, runs=1):
    launches = Launches()
    launches.phases[HOST] = [phases(1600, 400)] * runs
    launches.phases[DPU] = [phases(1200, 900)] * runs
    launches.phases[AUTO] = [auto] * runs
    return bench_adapt.rows_of("openmpi", 1 << 20, launches)


def test_rows_compare_with_the_better_fixed_choice():
    found = {(row["phase"], row["peer"]): row for row in rows(phases(1220, 410), runs=3)}
    assert found["hides", HOST]["over_best"] == pytest.approx(1600 / 1200)
    assert found["talks", DPU]["over_best"] == pytest.approx(900 / 400)
    assert found["talks", AUTO]["over_best"] == pytest.approx(1.025)
    assert found["all", AUTO]["turn_ns"] == 815
    assert found["all", AUTO]["over_best"] == pytest.approx(815 / 1000)
    assert found["all", AUTO]["runs"] == 3


@pytest.mark.parametrize(
    ("auto", "is_met"),
    [(phases(1220, 410), True), (phases(1280, 410), False), (phases(1200, 430), False), (phases(1600, 400), False)],
)
def test_what_is_asked(auto, is_met):
    assert bench_adapt.met(rows(auto), "openmpi") == is_met


def test_a_peer_without_results_has_no_rows():
    launches = Launches()
    launches.phases[DPU] = [phases(1200, 900)]
    found = bench_adapt.rows_of("mpich", 1024, launches)
    assert {row["peer"] for row in found} == {DPU}
    assert not bench_adapt.met(found, "mpich")


@pytest.mark.parametrize("mpi", ("openmpi", "mpich"))
def test_the_program_runs_and_checks_its_data(mpi, tmp_path):
    out = tmp_path / "out.json"
    argv = [str(program("bench", mpi, "adapt")), "--turns", "3", "--phases", "3", "--bytes", "1000", "--messages", "2"]
    result = launch.local_mpirun(mpi, 2, [*argv, "--work-iterations", "10", "--json", str(out)], timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr
    written = json.loads(out.read_text())
    assert [each["phase"] for each in written["phases"]] == ["hides", "talks", "hides"]
    assert all(each["verified"] and each["turn_ns"] > 0 for each in written["phases"])
    assert written["work_iterations"] == 10
    bad = launch.local_mpirun(mpi, 1, [argv[0], "--turns", "0"], timeout=LIMIT_S)
    assert bad.returncode != 0 and "adapt: --turns '0' is not usable" in bad.stderr


def test_bad_arguments_are_one_line():
    assert_one_line_error(offpath("bench", "adapt", "--mpi", "x"), "'x' is not an MPI")
    assert_one_line_error(offpath("bench", "adapt", "--size", "much"), "much")
