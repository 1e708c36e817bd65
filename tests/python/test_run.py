# SPDX-License-Identifier: BSD-3-Clause
"""`offpath run`: what the ranks get, what the user gets back."""

import json
import os
import signal
import subprocess

import pytest
from conftest import ROOT, assert_one_line_error, offpath
from offpath import injection, stats
from offpath.injection import OffloadOptions
from offpath.paths import paths

MPIS = ("openmpi", "mpich")
OVERSUBSCRIBE = {"openmpi": ["--oversubscribe"], "mpich": []}


def mpirun(mpi, *words):
    return [f"mpirun.{mpi}", *OVERSUBSCRIBE[mpi], *words]


@pytest.mark.parametrize("mpi", MPIS)
def test_every_rank_has_the_library_and_the_settings(mpi, programs, witness_env):
    hello = str(programs / f"hello_{mpi}")
    command = mpirun(mpi, "-np", "2", hello)
    result = offpath("run", "--policy", "ialltoall:1M-inf:dpu,x:host", "--", *command, env=witness_env)
    assert result.returncode == 0
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [["0", "2"], ["1", "2"]]
    assert result.stderr == "offpath: 2 ranks on 1 node: 4 operations offloaded (2.0 KiB), 2 on the host: policy.\n"


@pytest.mark.parametrize("mpi", MPIS)
def test_all_programs_of_one_mpirun_are_reached(mpi, programs, witness_env, tmp_path):
    hello = str(programs / f"hello_{mpi}")
    command = mpirun(mpi, "-np", "1", hello, ":", "-np", "1", hello)
    offpath("run", "--quiet", "--stats", str(tmp_path / "s"), "--policy", "a b;c,d", "--", *command, env=witness_env)
    assert [rank["policy"] for rank in stats.read(tmp_path / "s")] == ["a b;c,d", "a b;c,d"]


@pytest.mark.parametrize("mpi", MPIS)
def test_off_runs_natively(mpi, programs, witness_env):
    result = offpath("run", "--off", "--", *mpirun(mpi, "-np", "1", str(programs / f"hello_{mpi}")), env=witness_env)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("mpi", MPIS)
def test_status_of_the_program_comes_back(mpi, programs, witness_env):
    command = mpirun(mpi, "-np", "1", str(programs / f"hello_{mpi}"), "7")
    assert offpath("run", "--", *command, env=witness_env).returncode == 7


def test_program_without_mpirun(programs, witness_env):
    result = offpath("run", "--quiet", "--", "sh", "-c", "echo $LD_PRELOAD; exit 9", env=witness_env)
    assert (result.returncode, result.stderr) == (9, "")
    assert result.stdout.strip() == str(programs / "prefix" / "lib" / "liboffpath_mpi.so")


def test_program_that_a_signal_ends(witness_env):
    result = offpath("run", "--quiet", "--", "sh", "-c", "kill -SEGV $$", env=witness_env)
    assert result.returncode == 128 + signal.SIGSEGV


def test_program_that_does_not_use_mpi_is_told_apart(witness_env):
    result = offpath("run", "--", "true", env=witness_env)
    assert result.returncode == 0
    assert result.stderr.startswith("offpath: no rank reported")


def test_options_of_the_program_stay_its_own(witness_env):
    result = offpath("run", "-q", "--", "echo", "--policy", "-x", "--help", env=witness_env)
    assert result.stdout == "--policy -x --help\n"


def test_a_preloaded_tool_keeps_its_place_in_front():
    assert injection.preload(["/our.so"], {"LD_PRELOAD": "/tool.so /other.so"}) == "/tool.so:/other.so:/our.so"
    assert injection.preload(["/our.so"], {"LD_PRELOAD": "/our.so"}) == "/our.so"


def test_statistics_of_earlier_runs_are_not_counted(programs, witness_env, tmp_path):
    file = tmp_path / "s"
    file.write_text('{"offloaded_count": 1000}\n')
    command = mpirun("mpich", "-np", "1", str(programs / "hello_mpich"))
    result = offpath("run", "--stats", str(file), "--", *command, env=witness_env)
    assert "2 operations offloaded" in result.stderr
    assert len(file.read_text().splitlines()) == 2


def test_no_private_file_is_left(witness_env, tmp_path):
    offpath("run", "--", "true", env=witness_env | {"TMPDIR": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


def test_signal_reaches_the_program_once(witness_env, tmp_path):
    script = 'trap "echo got; exit 5" TERM; echo ready; while :; do read -t 1 x < /dev/null; sleep 0.05; done'
    child = subprocess.Popen(
        [ROOT / "offpath", "run", "-q", "--", "bash", "-c", script],
        stdout=subprocess.PIPE, text=True, env=os.environ | witness_env,
    )  # fmt: skip
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.communicate()[0] == "got\n"
    assert child.returncode == 5


def test_a_policy_file_that_is_not_there(witness_env):
    result = offpath("run", "--policy-file", "/no/such/file", "--", "true", env=witness_env)
    assert_one_line_error(result, "/no/such/file", "offpath tune", status=2)


def test_blocking_calls_reach_the_ranks(witness_env):
    result = offpath("run", "-q", "--blocking", "bcast, allreduce", "--", "sh", "-c", "echo $OFFPATH_MPI_BLOCKING",
                     env=witness_env)  # fmt: skip
    assert result.stdout == "bcast,allreduce\n"


def test_summary_says_why():
    ranks = [
        {"node": f"n{i}", "mpi": "mpich", "native_count": 3, "reason": "no core is left. Set X."} for i in range(2)
    ]
    expected = "2 ranks on 2 nodes (MPICH): 0 operations offloaded, 6 on the host: no core is left. Set X."
    assert stats.summary(ranks) == expected


def test_summary_tells_the_policy_from_what_the_service_does_not_do():
    def said(native, forms):
        return stats.summary([{"node": "n", "native_count": native, "why": {"form_count": forms}}]).split(", ", 1)[1]

    assert said(3, 0) == "3 on the host by policy."
    assert said(3, 3) == "3 on the host in a form that the service does not do (as user-defined operators)."
    assert said(5, 3).endswith(", 3 of them in a form that the service does not do (as user-defined operators), "
                               "the others by policy.")  # fmt: skip


def test_lines_cut_short_are_left_out(tmp_path):
    file = tmp_path / "s"
    file.write_text(json.dumps({"rank": 0}) + '\n{"rank": 1, "no\n[1]\n')
    assert stats.read(file) == [{"rank": 0}]


def test_options_win_over_the_environment(programs, monkeypatch):
    monkeypatch.setenv("OFFPATH_PREFIX", str(programs / "prefix"))
    given = {"OFFPATH_POLICY": "a", "OFFPATH_LOG": "debug", "HOME": "/"}
    chosen = injection.variables(OffloadOptions(policy="b"), paths(), given)
    assert (chosen["OFFPATH_POLICY"], chosen["OFFPATH_LOG"], "HOME" in chosen) == ("b", "debug", False)
