# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench faults`: verdicts by what programs say, what its rows come to, its program, a few kills."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from bench_support import mpirun, program
from conftest import ROOT, assert_one_line_error, eventually, offpath, require, requires_root, succeeded
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.processes import Completed
from offpath.bench import fault_kills
from offpath.bench.fault_kills import Kill, Series
from offpath.bench.fault_verdicts import ERROR, RIGHT, STOOD, WRONG, Ended, judged, stood
from offpath.bench.suite import faults

GOOD = "4 results checked, 0 wrong\nerrors: 0\nlongest wait: 0.4950 s\nverified: yes\n"
WARNING = "offpath warn: the service on host a was lost (operations it worked on fail). OFFPATH_SERVICE_LOG\n"
MPICH_ERROR = "Abort(17) on node 0: Fatal error in MPI_Comm_call_errhandler: Offpath: service on this node was lost\n"
OPENMPI_ERROR = "[a:1] *** Offpath: service on this node was lost (operation ibcast #1)\n[a:1] *** MPI_ERR\n"


@pytest.mark.parametrize(
    ("status", "out", "err", "verdict", "said"),
    [
        (0, GOOD, WARNING, RIGHT, ""),
        (1, "", WARNING + MPICH_ERROR, ERROR, "Offpath: service on this node was lost"),
        (16, "", OPENMPI_ERROR, ERROR, "Offpath: service on this node was lost (operation ibcast #1)"),
        (18, "", "[a:1] *** MPI_ERR_IN_STATUS: error code in status\n", ERROR, "MPI_ERR_IN_STATUS"),
        (95, "", "[a:1] ORTE_ERROR_LOG: Data unpack had inadequate space in file util/show_help.c at line 513\n", ERROR,
         "ORTE_ERROR_LOG: Data unpack had inadequate space in file util/show_help.c at line 513"),
        (0, GOOD.replace("errors: 0", "errors: 3"), WARNING + "Offpath: lost (rank 1, ibcast 7)\n", ERROR,
         "Offpath: lost (rank 1, ibcast 7)"),
        (0, GOOD.replace("errors: 0", "errors: 3"), "", WRONG, "errors that are not Offpath's"),
        (1, GOOD.replace("yes", "no"), WARNING, WRONG, "verified: no"),
        (1, "verified: NO\n", WARNING + MPICH_ERROR, WRONG, "verified: NO"),
        (1, "", "faults: WRONG on rank 1: ibcast 7\n" + MPICH_ERROR, WRONG, "faults: WRONG on rank 1: ibcast 7"),
        (1, "", WARNING, WRONG, "exit 1, and nobody says why"),
        (0, "", WARNING, WRONG, "exit 0, and nothing was checked"),
        (139, "", "mpirun noticed that process rank 1 exited on signal 11 (Segmentation fault).\n", WRONG,
         "mpirun noticed that process rank 1 exited on signal 11 (Segmentation fault)."),
        (139, "", MPICH_ERROR + "APPLICATION TERMINATED WITH THE EXIT STRING: Aborted (signal 6)\n", WRONG,
         "APPLICATION TERMINATED WITH THE EXIT STRING: Aborted (signal 6)"),
        (134, "", MPICH_ERROR, WRONG, "exit 134"),
        (137, "", MPICH_ERROR + "KILLED BY SIGNAL: 9 (Killed)\n", ERROR, "Offpath: service on this node was lost"),
    ],
)  # fmt: skip
def test_verdicts(status, out, err, verdict, said):
    found = judged(Completed([], status, out, err))
    assert (found.verdict, found.said) == (verdict, said)
    assert found.longest_wait_s == (0.495 if verdict == RIGHT else None)
    assert found.output == ("" if verdict == RIGHT else f"{out}\n{err}")


def test_who_does_not_end_stands():
    found = stood(subprocess.TimeoutExpired(["a"], 60, output=b"a\n", stderr=WARNING.encode()))
    assert (found.verdict, found.said) == (STOOD, "not over after 60 s") and WARNING in found.output
    assert stood(subprocess.TimeoutExpired(["a"], 60)).output == ""
    # Ranks that remain where others have gone: after an abort they are what a launcher has left.
    assert judged(Completed([], 143, "", WARNING), left_behind=True).verdict == STOOD
    assert judged(Completed([], 143, "", MPICH_ERROR), left_behind=True).verdict == ERROR
    # What was wrong before stays wrong.
    wrong = "faults: WRONG on rank 1: ibcast 7\n"
    assert stood(subprocess.TimeoutExpired(["a"], 60, stderr=wrong.encode())).verdict == WRONG
    assert judged(Completed([], 143, "", wrong), left_behind=True).verdict == WRONG


def kill(number, verdict, wait=None, late=0):
    return Kill(number, 0.5, Ended(verdict, wait), late)


def test_rows():
    labels = {"mpi": "mpich", "nodes": 1, "program": "random"}
    kills = [kill(i, RIGHT, i / 100) for i in range(1, 101)] + [kill(101, ERROR, late=2), kill(102, ERROR)]
    row = faults.row_of(labels, Ended(RIGHT, 0.02), kills)
    assert (row["kills_count"], row["right_count"], row["error_count"], row["late_count"]) == (102, 100, 2, 2)
    assert row["blackout_median_s"] == pytest.approx(0.505) and row["blackout_max_s"] == 1
    assert row["blackout_p99_s"] == 0.99 and row["unkilled_wait_s"] == 0.02 and row["verified"]
    for bad in (WRONG, STOOD):
        row = faults.row_of(labels, Ended(RIGHT, 0.02), [kill(1, bad)])
        assert row[f"{bad}_count"] == 1 and not row["verified"] and "blackout_max_s" not in row


class FakeRuns(Series):
    """Of which each has an outcome that is known before."""

    def __init__(self, outcomes, seed=1):
        self.labels, self.seed, self.patience_s, self.kills, self.life_s = {"program": "random"}, seed, 60, 0, 2.0
        self.outcomes, self.moments = iter(outcomes), []

    def _run(self, where, moment, timeout_s):
        self.moments.append(moment)
        watch = fault_kills.Watch({}, moment)
        ended, watch.killed = next(self.outcomes)
        return ended, watch, True


def test_kills_that_come_too_late_are_repeated():
    runs = FakeRuns([(Ended(RIGHT), False)] * 3 + [(Ended(ERROR), True), (Ended(RIGHT), True)])
    first, second = runs.killed(None), runs.killed(None)
    assert (first.number, first.late, first.ended.verdict) == (1, 3, ERROR)
    assert (second.number, second.late, second.ended.verdict) == (2, 0, RIGHT)
    again = FakeRuns([(Ended(RIGHT), True)])
    assert again.killed(None).moment_s == runs.moments[0][0]  # by the seed
    assert len(set(runs.moments)) == 5 and all(0 <= moment < 2 for moment, _ in runs.moments)
    with pytest.raises(UserError, match="too late"):
        FakeRuns([(Ended(RIGHT), False)] * fault_kills.ATTEMPTS).killed(None)
    with pytest.raises(UserError, match="wrong without a kill"):
        FakeRuns([(Ended(WRONG), False)]).killed(None)


def test_a_service_that_has_ended_is_not_replaced():
    with subprocess.Popen(["true"]) as ended:
        eventually(lambda: "State:\tZ" in Path(f"/proc/{ended.pid}/status").read_text())
        assert not fault_kills.replace(ended.pid)


def test_bad_arguments_are_one_line(tmp_path):
    assert_one_line_error(offpath("bench", "faults", "--mpi", "x"), "'x' is not an MPI")
    assert_one_line_error(offpath("bench", "faults", "--programs", "x"), "'x'", "fft3d")
    assert_one_line_error(offpath("bench", "faults", "--collectives", "iscan"), "'iscan'", "ibcast")
    assert_one_line_error(offpath("bench", "faults", "--nodes", "0"), "--nodes 0")
    assert_one_line_error(offpath("bench", "faults", "--nodes", "3"), "4 ranks", "3 nodes")
    assert_one_line_error(offpath("bench", "faults", "--fault", "break", "--nodes", "1,2"), "needs several nodes")
    assert_one_line_error(offpath("bench", "faults", "--fault", "x"), "--fault", "'replace'")
    assert_one_line_error(offpath("bench", "faults", "--json", str(tmp_path)), "--json")


def test_the_program_has_these_collectives():
    text = (ROOT / "bench" / "faults" / "operation.hpp").read_text()
    listed = re.search(r"kKinds\[\] = \{(.*?)\}", text, re.DOTALL)[1]
    *collectives, _, _, _ = re.findall(r'"(\w+)"', listed)  # messages are the others
    assert tuple(collectives) == faults.COLLECTIVES


@pytest.mark.machine
@pytest.mark.parametrize("mpi", ("openmpi", "mpich"))
@pytest.mark.parametrize("kinds", [faults.COLLECTIVES, ("iallreduce", "ibcast")], ids=",".join)
def test_the_program_is_right_by_itself(mpi, kinds):
    path = program("bench", mpi, "faults")
    more = faults.BY_NAME["random"].with_openmpi if mpi == "openmpi" else ()
    done = mpirun(mpi, 3, path, "--seconds", "0.1", "--bytes", "40000", "--kinds", ",".join(kinds), *more)
    assert done.returncode == 0 and "verified: yes" in done.stdout and "longest wait: " in done.stdout, done
    assert int(done.stdout.split()[0]) > 0


@pytest.mark.machine
@pytest.mark.parametrize(
    ("nodes", "more", "verdicts"),
    [
        ("1", (), (RIGHT, ERROR)),
        ("1", ("--fault", "stop"), (RIGHT,)),
        ("1", ("--fault", "replace"), (RIGHT,)),
        pytest.param("2", ("--fault", "replace"), (RIGHT,), marks=requires_root),
    ],
)
def test_kills(nodes, more, verdicts, tmp_path):
    program("bench", "mpich", "faults")
    require(paths().preload_library)
    out = tmp_path / "out.json"
    options = ["--programs", "random", "--nodes", nodes, "--mpi", "mpich", "--seed", "7", "--kills", "2", *more]
    succeeded(offpath("bench", "faults", *options, "--json", str(out), cwd=tmp_path))
    written = json.loads(out.read_text())
    (row,) = written["rows"]
    assert row["kills_count"] == 2 == row["right_count"] + row["error_count"] and written["meta"]["seed"] == 7
    assert [each["number"] for each in written["kills"]] == [1, 2]
    assert all(each["verdict"] in verdicts for each in written["kills"]), written["kills"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.json"]


@pytest.mark.machine
def test_who_does_not_end_is_ended(tmp_path, monkeypatch):
    """A program that hangs as soon as its service is killed."""
    path = program("bench", "mpich", "faults")
    script = tmp_path / "hangs"
    script.write_text(f'#!/bin/sh\n{path} "$@"\nexec sleep 1000\n')
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    series = Series(faults.BY_NAME["random"], "mpich", 1, seed=1, patience_s=3.0)
    series.argv, series.life_s = [str(script), "--seconds", "1"], 0.5
    found = series.killed(faults.LoopbackPlace(2))
    assert found.ended.verdict == STOOD and "not over after" in found.ended.said
    assert list(tmp_path.iterdir()) == [script]
    sleeping = [file for file in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x001000" in read(file)]
    assert not [file for file in sleeping if str(tmp_path).encode() in read(file.with_name("environ"))]


def read(file):
    try:
        return file.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(("there", "left_behind"), [([[1, 2], [1]], True), ([[1, 2], [1, 2], []], False)])
def test_ranks_that_others_have_left_are_ended(there, left_behind, monkeypatch):
    """Two ranks, of which one remains; or both end, and with them the run."""
    looks, ended, watch = iter(there), [], fault_kills.Watch({"a": "b"}, (0, 0))

    def marked(_):
        found = next(looks, there[-1])
        if not found:
            watch._over.set()
        return found

    monkeypatch.setattr(fault_kills, "_marked", marked)
    monkeypatch.setattr(fault_kills, "services", lambda mark: [])
    monkeypatch.setattr(fault_kills, "LOOK_AFTER_S", 0.001)
    monkeypatch.setattr(fault_kills, "LEFT_BEHIND_S", 0)
    monkeypatch.setattr(fault_kills.inventory, "end_processes", lambda find: ended.append(find))
    watch._end_left_behind(watch._ranks())
    assert (watch.left_behind, len(ended)) == (left_behind, int(left_behind))
