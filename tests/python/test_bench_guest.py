# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench guest`: what its rows come to, its programs, and that nothing of it outlives it."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from bench_support import program
from conftest import LIMIT_S, ROOT, assert_one_line_error, offpath, require, succeeded
from offpath.base.paths import paths
from offpath.bench import guest_launches
from offpath.bench.guest_launches import COMPUTES, ONE, OWN, SLEEPS, Outcome, Setting
from offpath.bench.kit.turns import Case
from offpath.bench.suite import guest

MS, S = 1_000_000, 1_000_000_000


def outcome(late_ms, rounds, computed=None):
    """Of two jobs and two cores."""
    sleeper = {
        "sleeps_count": 100, "worst_late_ns": late_ms * MS, "median_late_ns": 1, "p999_late_ns": late_ms * MS // 2,
        "gaps_over_100ms_count": int(late_ms > 100), "gaps_over_1s_count": int(late_ms > 1000),
    }  # fmt: skip
    job = {"ranks": 4, "rounds_count": rounds, "took_ns": 2 * S, "verified": True}
    computations = [{"pieces_count": computed, "took_ns": S}] * 2 if computed else []
    return Outcome([job, job], [sleeper, sleeper | {"worst_late_ns": 1}], computations)


def case(setting, mode, launches):
    return Case(setting.labels | {"mode": mode}, None, launches=launches)


def rows(default, dpu, stranger=SLEEPS, native=(80, 1000)):
    setting = Setting("openmpi", 2, 4, OWN, stranger)
    launches = {"native": [outcome(*native)] * 3, "default": [outcome(*default)] * 3, "dpu": [outcome(*dpu)] * 3}
    return guest.rows_of([case(setting, mode, each) for mode, each in launches.items()], [1000.0, 1000.0])


def test_rows_compare_with_the_mpi_alone():
    native, default, dpu = rows((60, 990), (1200, 700))
    assert native["rounds_per_s"] == 1000 and native["rounds_ratio"] == 1 and native["runs"] == 3
    assert default["rounds_ratio"] == pytest.approx(0.99) and default["late_ratio"] == pytest.approx(60 / 80)
    assert dpu["worst_late_ms"] == 1200 and dpu["gaps_over_1s_count"] == 6 and dpu["late_ratio"] == pytest.approx(15)
    assert dpu["computation_share"] is None and dpu["verified"]


def test_below_what_is_noise_nobody_is_late():
    _, default, _ = rows((50, 1000), (50, 1000), native=(2, 1000))
    assert default["late_ratio"] == pytest.approx(50 / guest.NOISE_MS)


def test_the_computations_share():
    found = rows((1, 1, 250), (1, 1, 500), COMPUTES, native=(1, 1, 400))
    assert [row["computation_share"] for row in found] == pytest.approx([0.4, 0.25, 0.5])


def test_a_failed_launch_does_not_count():
    setting = Setting("mpich", 1, 2, OWN, SLEEPS)
    failed = case(setting, "native", [])
    assert guest.rows_of([failed], [1.0]) == []
    (row,) = guest.rows_of([failed, case(setting, "dpu", [outcome(1, 1)])], [1.0])
    assert row["mode"] == "dpu" and "rounds_ratio" not in row and "late_ratio" not in row


def checks_of(found):
    return guest.BENCHMARK.checks({"meta": {}, "rows": found})


@pytest.mark.parametrize(
    ("default", "dpu", "met"),
    [
        ((90, 980), (90, 660), [True, True, True, True]),
        ((90, 960), (90, 640), [True, True, False, False]),
        ((99, 980), (130, 700), [False, False, True, True]),
        ((105, 980), (110, 700), [True, False, True, True]),
    ],
)
def test_what_is_asked(default, dpu, met):
    checks = checks_of(rows(default, dpu))
    names = ["guest_late_ratio", "guest_late_ms", "guest_default_rounds_ratio", "guest_dpu_rounds_ratio"]
    assert [each["name"] for each in checks] == [f"openmpi/{name}" for name in names]
    assert [each["met"] for each in checks] == met
    assert len(checks_of(rows(default + (1,), dpu + (1,), COMPUTES))) == 2  # no rounds are asked for there
    assert checks_of([]) == []


def test_one_job_has_one_kind_of_session():
    found = guest.chosen_settings(["openmpi"], [1, 3], [2], [OWN, ONE], [SLEEPS])
    assert [(each.jobs, each.sessions) for each in found] == [(1, OWN), (3, OWN), (3, ONE)]
    found = guest.chosen_settings(["mpich"], [1, 3], [2], [ONE, OWN], [SLEEPS])
    assert [(each.jobs, each.sessions) for each in found] == [(1, OWN), (3, OWN)]


def test_bad_arguments_are_one_line():
    assert_one_line_error(offpath("bench", "guest", "--mpi", "x"), "'x' is not an MPI")
    assert_one_line_error(offpath("bench", "guest", "--jobs", "1,none"), "--jobs 1,none")
    assert_one_line_error(offpath("bench", "guest", "--ranks", "0"), "--ranks 0")
    assert_one_line_error(offpath("bench", "guest", "--sessions", "two"), "'two'", "own, one")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder in which launches keep their files: nothing may be left there."""
    require(paths().prefix / "bin" / "offpath-stranger")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


@pytest.mark.machine
def test_strangers_say_what_they_got(here):
    assert all(pieces > 0 for pieces in guest_launches.computation_alone(0.1))


@pytest.mark.machine
@pytest.mark.parametrize("mpi", ("openmpi", "mpich"))
def test_it_runs(mpi, tmp_path, here):
    program("bench", mpi, "load")
    out = tmp_path / "out.json"
    options = ["--jobs", "2", "--ranks", "2", "--sessions", "own", "--strangers", "computes", "--seconds", "0.3"]
    succeeded(offpath("bench", "guest", "--mpi", mpi, *options, "--runs", "1", "--json", str(out)))
    written = json.loads(out.read_text())
    assert [row["mode"] for row in written["rows"]] == ["native", "default", "dpu"]
    for row in written["rows"]:
        assert row["rounds_per_s"] > 0 and row["sleeps_count"] > 0 and row["verified"]
        assert 0 <= row["computation_share"]
    out.unlink()


def working_in(folder):
    """The processes that were started there."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid() and os.readlink(entry / "cwd") == str(folder):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


@pytest.mark.machine
@pytest.mark.parametrize(
    ("mpi", "signum"),
    [("openmpi", signal.SIGINT), ("mpich", signal.SIGTERM), ("openmpi", signal.SIGKILL), ("mpich", signal.SIGKILL)],
)
def test_nothing_of_it_outlives_it(mpi, signum, here, tmp_path_factory):
    program("bench", mpi, "load")
    options = ["--mpi", mpi, "--jobs", "2", "--ranks", "2", "--seconds", "600", "--strangers", "computes"]
    output = tmp_path_factory.mktemp("said") / "output"
    with output.open("w") as file:
        bench = subprocess.Popen(
            [str(ROOT / "offpath"), "bench", "guest", *options], stdout=file, stderr=file, cwd=here
        )
    while not list(here.glob("*/go")):
        assert bench.poll() is None, output.read_text()
        time.sleep(0.01)
    assert len(working_in(here)) > 6
    bench.send_signal(signum)
    assert bench.wait(timeout=LIMIT_S) == (-signum if signum == signal.SIGKILL else 130), output.read_text()
    if signum == signal.SIGKILL:
        while working_in(here):  # they end by themselves
            time.sleep(0.01)
        offpath("bench", "guest", "--mpi", mpi, "--ranks", "2", "--modes", "native", "--seconds", "0.1")  # tidies up
    else:
        assert "interrupted after 0 of" in output.read_text()
    assert working_in(here) == []
