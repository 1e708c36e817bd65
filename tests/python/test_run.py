# SPDX-License-Identifier: BSD-3-Clause
"""`offpath run`: what the ranks get, what the user gets back."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import AS_ROOT, LIMIT_S, MPIS, ROOT, assert_one_line_error, captured, offpath, require, succeeded
from offpath.base import handover, words
from offpath.base.paths import paths
from offpath.launch import injection, own_rank, stats
from offpath.launch.closing_line import LEAST_WORTH_TUNING, closing_line
from offpath.launch.injection import OffloadOptions

OVERSUBSCRIBE = {"openmpi": ["--oversubscribe"], "mpich": []}


def mpirun(mpi, *words):
    return [f"mpirun.{mpi}", *OVERSUBSCRIBE[mpi], *words]


@pytest.mark.machine
@pytest.mark.parametrize("mpi", MPIS)
def test_every_rank_has_the_library_and_the_settings(mpi, programs, witness_env):
    hello = str(programs / f"hello_{mpi}")
    command = mpirun(mpi, "-np", "2", hello)
    result = succeeded(offpath("run", "--policy", "ialltoall:1M-inf:dpu,x:host", "--", *command, env=witness_env))
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [["0", "2"], ["1", "2"]]
    assert result.stderr == "offpath: 2 ranks on 1 node: 6 collectives, 4 offloaded (2.0 KiB), 2 native: policy.\n"


@pytest.mark.machine
@pytest.mark.parametrize("mpi", MPIS)
def test_all_programs_of_one_mpirun_are_reached(mpi, programs, witness_env, tmp_path):
    hello = str(programs / f"hello_{mpi}")
    command = mpirun(mpi, "-np", "1", hello, ":", "-np", "1", hello)
    options = ("--quiet", "--stats", str(tmp_path / "s"), "--policy", "a b;c,d")
    succeeded(offpath("run", *options, "--", *command, env=witness_env))
    assert [rank["policy"] for rank in stats.read(tmp_path / "s")] == ["a b;c,d", "a b;c,d"]


@pytest.mark.machine
@pytest.mark.parametrize("mpi", MPIS)
def test_off_runs_natively(mpi, programs, witness_env):
    result = offpath("run", "--off", "--", *mpirun(mpi, "-np", "1", str(programs / f"hello_{mpi}")), env=witness_env)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("inside", [b"MPIR_CVAR_ABORT_ON_LEAKED_HANDLES", b"ompi_mpi_init: failed"])
def test_a_program_with_its_mpi_inside_is_said_and_runs_natively(inside, programs, witness_env, tmp_path):
    """All of the job: ranks with Offpath would wait for the others in MPI_Init."""
    program = tmp_path / "static"
    program.write_bytes(Path("/bin/sh").read_bytes() + inside)  # the loader does not look at what is behind
    program.chmod(0o755)
    command = ["env", program, "-c", 'echo "$LD_PRELOAD"; exit 4']
    result = offpath("run", "--trace", tmp_path / "trace.json", "--", *command, env=witness_env)
    assert (result.returncode, result.stdout) == (4, "\n")
    assert result.stderr.startswith(f"offpath: all MPI calls stay native: {program} has its MPI linked into itself")
    assert result.stderr.count("\n") == 1
    program.write_bytes(program.read_bytes() + b"\0libmpi.so.40")  # a tool that knows what MPI says
    assert offpath("run", "--quiet", "--", *command, env=witness_env).stdout.endswith("liboffpath_mpi.so\n")


@pytest.mark.machine
@pytest.mark.parametrize("mpi", MPIS)
def test_status_of_the_program_comes_back(mpi, programs, witness_env):
    command = mpirun(mpi, "-np", "1", str(programs / f"hello_{mpi}"), "7")
    assert offpath("run", "--", *command, env=witness_env).returncode == 7


def test_program_without_mpirun(programs, witness_env):
    result = offpath("run", "--quiet", "--", "sh", "-c", "echo $LD_PRELOAD; exit 9", env=witness_env)
    assert (result.returncode, result.stderr) == (9, "")
    assert result.stdout.strip() == str(programs / "prefix" / "lib" / "liboffpath_mpi.so")


def test_who_moves_memory_gets_the_library_that_watches_it():
    where = paths()
    libraries = [str(where.preload_library), str(where.watch_library)]
    for value, preloaded in (("on", libraries), ("3", libraries), ("off", libraries[:1]), ("allocated", libraries[:1])):
        chosen = injection.variables(OffloadOptions(), where, {"OFFPATH_MAPPED": value})
        assert chosen["LD_PRELOAD"].split(":") == preloaded
    # A benchmark or a lab's run inherits what was set for it, unless it says otherwise itself.
    assert injection.memory_setting({}, {"OFFPATH_MAPPED": "on", "HOME": "/"}) == {"OFFPATH_MAPPED": "on"}
    assert injection.memory_setting({"OFFPATH_MAPPED": "off"}, {"OFFPATH_MAPPED": "on"}) == {"OFFPATH_MAPPED": "off"}


def test_program_that_a_signal_ends(witness_env):
    result = offpath("run", "--quiet", "--", "sh", "-c", "kill -SEGV $$", env=witness_env)
    assert result.returncode == -signal.SIGSEGV  # it took our place
    result = offpath("run", "--", "sh", "-c", "kill -SEGV $$", env=witness_env)
    assert result.returncode == 128 + signal.SIGSEGV


def test_program_that_does_not_use_mpi_is_told_apart(witness_env):
    result = succeeded(offpath("run", "--", "true", env=witness_env))
    assert result.stderr.startswith("offpath: no rank reported")


@pytest.mark.parametrize(
    "script, ending",
    [("kill -TERM $$", "was ended by SIGTERM"), ("exit 130", "was ended by SIGINT"), ("exit 3", "ended with status 3"),
     ("exit 132", "ended with status 132")],
)  # fmt: skip
def test_how_a_command_ended_is_said_first_where_no_rank_reported(script, ending, witness_env):
    result = offpath("run", "--", "sh", "-c", script, env=witness_env)
    assert result.stderr.startswith(f"offpath: the command {ending}, and no rank reported"), result.stderr


def test_options_of_the_program_stay_its_own(witness_env):
    result = offpath("run", "-q", "--", "echo", "--policy", "-x", "--help", env=witness_env)
    assert result.stdout == "--policy -x --help\n"


def test_a_preloaded_tool_keeps_its_place_in_front():
    assert injection.preload(["/our.so"], {"LD_PRELOAD": "/tool.so /other.so"}) == "/tool.so:/other.so:/our.so"
    assert injection.preload(["/our.so"], {"LD_PRELOAD": "/our.so"}) == "/our.so"


@pytest.mark.machine
def test_statistics_of_earlier_runs_are_not_counted(programs, witness_env, tmp_path):
    file = tmp_path / "s"
    file.write_text('{"offloaded_count": 1000}\n')
    command = mpirun("mpich", "-np", "1", str(programs / "hello_mpich"))
    result = offpath("run", "--stats", str(file), "--", *command, env=witness_env)
    assert "2 offloaded" in result.stderr
    assert len(file.read_text().splitlines()) == 2


def test_lines_that_another_run_writes_meanwhile_are_not_counted(witness_env, tmp_path):
    """As steps of one batch script do that run at the same time."""
    other = '{"offloaded_count": 1000, "node": "n", "size": 2}'
    script = f"echo '{other}' >> s; echo '{{\"offloaded_count\": 2, \"size\": 2}}' >> $OFFPATH_STATS_FILE"
    result = offpath("run", "--stats", "s", "--", "sh", "-c", script, env=witness_env, cwd=tmp_path)
    assert "2 offloaded" in result.stderr and "1 rank" in result.stderr, result.stderr
    assert [rank["offloaded_count"] for rank in stats.read(tmp_path / "s")] == [1000, 2]
    assert [file.name for file in tmp_path.iterdir()] == ["s"]


def test_what_a_killed_run_has_left_the_next_one_removes(witness_env, tmp_path):
    """Not what belongs to one that goes on."""
    script = "echo ready; exec sleep 1000"
    runs = [
        subprocess.Popen([ROOT / "offpath", "run", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True,
                         env=os.environ | witness_env, cwd=tmp_path, start_new_session=True)
        for _ in range(2)
    ]  # fmt: skip
    try:
        assert [run.stdout.readline() for run in runs] == ["ready\n"] * 2 and len(list(tmp_path.iterdir())) == 2
        os.killpg(runs[0].pid, signal.SIGKILL)
        runs[0].wait()
        assert offpath("run", "--", "true", env=witness_env, cwd=tmp_path).returncode == 0
        assert [f"-{runs[1].pid}-" in file.name for file in tmp_path.iterdir()] == [True]
    finally:
        os.killpg(runs[1].pid, signal.SIGKILL)
        for run in runs:
            run.communicate()


def test_what_it_has_left_among_temporary_files_is_removed_from_anywhere(witness_env, tmp_path):
    """As it does where the working directory is not to be written."""
    (tmp_path / f".offpath-{handover._machine()}-1-0-x").mkdir()
    (tmp_path / "work").mkdir()
    offpath("run", "--", "true", env=witness_env | {"TMPDIR": str(tmp_path)}, cwd=tmp_path / "work")
    assert [file.name for file in tmp_path.iterdir()] == ["work"]


def test_no_private_file_is_left(witness_env, tmp_path):
    offpath("run", "--", "true", env=witness_env | {"TMPDIR": str(tmp_path)}, cwd=tmp_path)
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


def test_other_signals_reach_the_program_and_do_not_end_us(witness_env):
    """Slurm with control groups signals only what it has started itself: us, where srun starts `offpath run`."""
    script = 'trap "echo got one" USR1; trap "echo got two; exit 5" USR2; echo ready; while :; do sleep 0.05; done'
    child = subprocess.Popen(
        [ROOT / "offpath", "run", "-q", "--", "bash", "-c", script],
        stdout=subprocess.PIPE, text=True, env=os.environ | witness_env,
    )  # fmt: skip
    assert child.stdout.readline() == "ready\n"
    for signum, heard in ((signal.SIGUSR1, "got one\n"), (signal.SIGUSR2, "got two\n")):
        child.send_signal(signum)
        assert child.stdout.readline() == heard
    assert child.wait(LIMIT_S) == 5


@pytest.mark.machine
@pytest.mark.parametrize("mpi", MPIS)
def test_a_launcher_may_start_offpath_run_itself(mpi, programs, witness_env):
    """Once for each rank: MPICH's talk to it over a descriptor that they inherit. One line a job."""
    inside = [str(ROOT / "offpath"), "run", "--", str(programs / f"hello_{mpi}")]
    result = succeeded(captured(mpirun(mpi, "-np", "2", *inside), env=os.environ | witness_env))
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [["0", "2"], ["1", "2"]]
    assert result.stderr.count("offpath:") == 1


@pytest.mark.machine
@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_that_a_launcher_gave_offpath_run_are_counted_and_recorded(mpi, programs, tmp_path):
    require(paths().lib / f"liboffpath_mpi_{mpi}.so")
    inside = [str(ROOT / "offpath"), "run", "--trace", str(tmp_path / "t.json"), "--", str(programs / f"hello_{mpi}")]
    result = succeeded(captured(mpirun(mpi, "-np", "2", *inside), env=os.environ | AS_ROOT))
    first, *others = [line for line in result.stderr.splitlines() if line.startswith("offpath:")]
    assert "2 ranks on 1 node" in first and "4 collectives, 0 offloaded, 4 native" in first and len(others) == 1
    assert len(json.loads((tmp_path / "t.json").read_text())["offpath"]["ranks"]) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]
    inside = [str(ROOT / "offpath"), "profile", "-o", str(tmp_path / "p.jsonl"), "--", str(programs / f"hello_{mpi}")]
    result = captured(mpirun(mpi, "-np", "2", *inside), env=os.environ | AS_ROOT)
    assert result.returncode == 0 and result.stderr.count("offpath: 2 ranks") == 1, result.stderr


@pytest.mark.machine
def test_a_program_of_another_mpi_is_said(programs):
    require(paths().lib / "liboffpath_mpi_openmpi.so")
    command = ["mpirun.mpich", "-np", "2", str(programs / "hello_openmpi")]
    result = offpath("run", "--", *command, env=AS_ROOT)
    assert "2 processes ran as 2 jobs" in result.stderr, result.stderr
    assert "built with Open MPI, and started by MPICH" in result.stderr


@pytest.mark.parametrize(
    "arguments, env, word",
    [
        (["--policy", "ialltoal:dpu"], {}, "ialltoal"),
        ([], {"OFFPATH_POLICY": "ialltoall:dpux"}, "OFFPATH_POLICY"),
        (["--cores", "two"], {}, "list of cores"),
        ([], {"OFFPATH_SERVICE_CORES": "1;2"}, "list of cores"),
    ],
)
def test_what_no_rank_would_understand_is_found_before_the_job(arguments, env, word):
    require(paths().policy_program)
    assert_one_line_error(offpath("run", *arguments, "--", "echo", "started", env=env), word, status=2)


def test_misspelt_variables_are_said_once(witness_env):
    result = offpath("run", "--", "true", env=witness_env | {"OFFPATH_POLICI": "x"})
    assert "nothing reads OFFPATH_POLICI (perhaps OFFPATH_POLICY" in result.stderr


def line(**changes):
    return {"node": "n1", "mpi": "mpich", "size": 2, "offloaded_count": 0, "native_count": 0} | changes


@pytest.mark.parametrize(
    "runs",
    [
        [(900, 450)],  # a second is not there to be gained
        [(40_000, 1_500)],  # less than one part in twenty
        [(4_000, 3_900)],  # it waits, and has nothing to do meanwhile
        [(4_000, 1_900), (4_000, 100)],  # for this rank, which computes
        [(0, 1_900)],  # nobody knows how long it ran
    ],
)
def test_where_little_can_be_gained_nothing_is_said_of_it(runs):
    messages = {"offloaded_count": 32}
    ranks = [line(messages=messages, run_ns=run * 1_000_000, wait_ns=waited * 1_000_000) for run, waited in runs]
    assert "gained" not in closing_line(ranks)


@pytest.mark.parametrize(
    "lines, expected",
    [
        (
            [line(node=f"n{i}", native_count=3, reason="no core is left. Set X.") for i in range(2)],
            "2 ranks on 2 nodes (MPICH): 6 collectives, 0 offloaded, 6 native: no core is left. Set X.",
        ),
        (
            [line(offloaded_count=2, offloaded_bytes=1024, native_count=1, passed={"blocking_count": 4})] * 2,
            "2 ranks on 1 node (MPICH): 14 collectives, 4 offloaded (2.0 KiB), 10 native (2 by policy, 8 blocking).",
        ),
        (
            [line(mpi="openshmem", offloaded_count=5, native_count=2, collectives={"put": {"offloaded_count": 5}})] * 2,
            "2 ranks on 1 node (OpenSHMEM): 14 operations, 10 offloaded (0 B; 10 put), 4 native (4 by policy).",
        ),
        (
            [line(windows={"operations_count": 427, "operations_bytes": 1024, "native_count": 0})] * 2,
            "2 ranks on 1 node (MPICH): 854 one-sided operations, 854 offloaded (2.0 KiB).",
        ),
        (
            [line(windows=dict(operations_count=1, operations_bytes=512, natively_count=3, natively_bytes=1024))] * 2,
            "2 ranks on 1 node (MPICH): 8 one-sided operations, 2 offloaded (1.0 KiB), 6 native "
            "(6 faster so, as measured).",
        ),
        (
            [line(messages=dict(offloaded_count=5, offloaded_bytes=1024, native_count=1, staging_bytes=512))] * 2,
            "2 ranks on 1 node (MPICH): 12 messages, 10 offloaded (2.0 KiB through 1.0 KiB of staging "
            "memory), 2 native (2 for want of room).",
        ),
        (
            [line(messages=dict(offloaded_count=32), run_ns=41 * 10**8, wait_ns=ns) for ns in (19 * 10**8, 2 * 10**9)],
            "2 ranks on 1 node (MPICH): 64 messages, 64 offloaded (0 B through 0 B of staging memory). Up to 1.9 s of "
            "4.1 s can be gained, as ranks waited for 64 messages: start them earlier, or compute "
            "more before the wait.",
        ),
        (
            [line(files=dict(write=dict(offloaded_count=3, offloaded_bytes=1024, native_count=1)))] * 2,
            "2 ranks on 1 node (MPICH): 8 file transfers, 6 offloaded (2.0 KiB), 2 native.",
        ),
        (
            [line(files=dict(read=dict(offloaded_count=3, offloaded_bytes=512), again_count=2, failed_count=1))] * 2,
            "2 ranks on 1 node (MPICH): 6 file transfers, 6 offloaded (1.0 KiB) (4 done again by their ranks), "
            "2 FAILED.",
        ),
        (
            [line(), line(mpi="petsc", offloaded_count=30), line(), line(mpi="petsc", offloaded_count=30)],
            "2 ranks on 1 node (MPICH): PETSc solvers: 60 vector steps offloaded, 0 native.",
        ),
        (
            [line(offloaded_count=1, moved_count=1, moved_bytes=4096, in_place_bytes=1024, copied_bytes=0)] * 2,
            "2 ranks on 1 node (MPICH): 2 collectives, 2 offloaded (0 B), 0 native; 2 buffers moved (8.0 KiB), 2.0 KiB "
            "used in place, 0 B copied.",
        ),
        (
            [line(lent_count=3, lent_bytes=1024, in_place_bytes=1024), line(moved_count=1, moved_bytes=4096)],
            "2 ranks on 1 node (MPICH): nothing that Offpath knows was called; 3 buffers allocated in turn, "
            "1 buffer moved (4.0 KiB), 1.0 KiB used in place, 0 B copied.",
        ),
        (
            [line(offloaded_count=1, coded_bytes=4096, wire_bytes=1024)] * 2,
            "2 ranks on 1 node (MPICH): 2 collectives, 2 offloaded (0 B), 0 native; 8.0 KiB went compressed as 2.0 KiB "
            "(75 % saved).",
        ),
        (
            [line(coded_bytes=4096, wire_bytes=1024, saved_ns=3_000_000_000)] * 2,
            "2 ranks on 1 node (MPICH): nothing that Offpath knows was called; 8.0 KiB went compressed as 2.0 KiB "
            "(75 % saved; by estimate links were busy 6 s less).",
        ),
        (
            [line(coded_bytes=4096, wire_bytes=1024, saved_ns=ns) for ns in (1000, -4_001_000)],
            "2 ranks on 1 node (MPICH): nothing that Offpath knows was called; 8.0 KiB went compressed as 2.0 KiB "
            "(75 % saved; by estimate links were busy 4 ms longer).",
        ),
        (
            [line(passed={"blocking_count": 4})] * 2,
            "2 ranks on 1 node (MPICH): 8 collectives, 0 offloaded, 8 native (8 blocking).",
        ),
        (
            [line(native_count=200, native_bytes_most=16)] * 2,
            "2 ranks on 1 node (MPICH): 400 collectives, 0 offloaded, 400 native (400 by policy of up to 16 B). "
            "Collectives this short gained only over links with 1 ms of latency. Elsewhere leave them to the MPI.",
        ),
        (
            [line(native_count=200, why=dict(form_count=200))] * 2,
            "2 ranks on 1 node (MPICH): 400 collectives, 0 offloaded, 400 native (400 in forms that the service does "
            "not do, such as user-defined operators).",
        ),
        (  # how long the blocks of irregular ones are nobody counts
            [line(native_count=3, native_bytes_most=16, collectives=dict(ialltoallv=dict(native_count=1)))] * 2,
            "2 ranks on 1 node (MPICH): 6 collectives, 0 offloaded, 6 native (6 by policy).",
        ),
        (
            [line(native_count=200, native_bytes_most=256 << 10)] * 2,
            "2 ranks on 1 node (MPICH): 400 collectives, 0 offloaded, 400 native (400 by policy of up to 256.0 KiB). "
            "To find out from which size on collectives pay on this machine: offpath tune.",
        ),
        (
            [line(node=f"n{i}", native_count=200, native_bytes_most=1 << 20) for i in range(2)],
            "2 ranks on 2 nodes (MPICH): 400 collectives, 0 offloaded, 400 native (400 by policy of up to 1.0 MiB). "
            "To find out from which size on collectives pay on these nodes: offpath tune --launch.",
        ),
        (
            [line(node=f"n{i}", seen={"messages_count": 12, "long_messages_count": 12}) for i in range(2)],
            "2 ranks on 2 nodes (MPICH): 24 messages, 0 offloaded, 24 native (24 of 512 KiB or more).",
        ),
        (
            [line(seen={"messages_count": 12, "long_messages_count": 5}, messages={"native_count": 4})] * 2,
            "2 ranks on 1 node (MPICH): 24 messages, 0 offloaded, 24 native (2 of 512 KiB or more, 14 shorter than "
            "512 KiB, 8 for want of room).",
        ),
        (
            [line(node=f"n{i}", seen={"messages_count": 12, "blocking_collectives_count": 1}) for i in range(2)],
            "2 ranks on 2 nodes (MPICH): 2 collectives, 0 offloaded, 2 native (2 blocking); 24 messages, 0 offloaded, "
            "24 native (24 shorter than 512 KiB).",
        ),
        (
            [line(seen={"messages_count": 12}, windows={"elsewhere_count": 18000, "native_count": 1})] * 2,
            "2 ranks on 1 node (MPICH): 24 messages, 0 offloaded, 24 native (24 shorter than 512 KiB); 36000 one-sided "
            "operations, 0 offloaded, 36000 native (2 windows native).",
        ),
        (
            [line(), line(native_count=3, failed_count=1, loss="the service on host n1 was silent", cure="Wait")],
            "2 ranks on 1 node (MPICH): 3 collectives, 0 offloaded, 3 native (3 by policy); 1 FAILED; the service on "
            "host n1 was silent. Wait.",
        ),
        (
            [line(offloaded_count=1, starved_ns=ns) for ns in (0, 31_500_000_000)],
            "2 ranks on 1 node (MPICH): 2 collectives, 2 offloaded (0 B), 0 native; the service waited for a processor "
            "for 31.5 s. Leave the service a core of its own (OFFPATH_SERVICE_CORES), or start fewer ranks than the "
            "node has cores.",
        ),
    ],
)
def test_the_closing_line(lines, expected):
    assert closing_line(lines, "mpich") == expected


def test_the_closing_line_of_one_node_says_what_to_try():
    said = closing_line([line(passed={"off_count": 5}, reason="the policy offloads nothing on 1 node(s)")] * 2)
    assert "10 collectives, 0 offloaded, 10 native: the policy offloads nothing on 1 node(s)." in said
    assert "seldom pays: run on several nodes" in said and "dpu" not in said


def test_advice_does_not_contradict_what_was_measured():
    """Each rule against the committed results that it stands on."""
    results = {name: json.loads((ROOT / f"docs/figures/results/{name}.json").read_text())["rows"]
               for name in ("one-node", "alltoall", "halo3d", "pt2pt", "security", "krylov-latency")}  # fmt: skip
    within = [row[key] for row in results["one-node"] for key in row if key.startswith("gain")]
    assert sum(gain > 1 for gain in within) / len(within) < 0.15  # seldom
    sums = {(row["nodes"], row["latency"]): row["pipecg_ms"] / row["preloaded_ms"] for row in results["krylov-latency"]}
    assert sums[2, "1 ms"] > 1.2 and sums[4, "1 ms"] > 1.2 and sums[2, "200 us"] < 1.05
    least = f"{LEAST_WORTH_TUNING >> 10} KiB"
    assert max(row["gain"] for row in results["alltoall"] if row["per_peer"] == least) > 1.2
    assert max(row["gain"] for row in results["alltoall"] if row["per_peer"] == "64 KiB") < 1.05
    sizes = {row["name"]: row["from"] for row in words.rows("policy_rows")}
    assert sizes["send"] == "512 << 10"
    shortest = [row for row in results["security"] if "512 KiB" in row["case"] and row["rate"] == "1 Gbit/s"]
    assert len(shortest) == 2 and all(row["host"] > 1.2 * row["auth"][0] for row in shortest)
    assert all(row["efficiency"] > 1.4 * row["host_efficiency"] for row in results["pt2pt"])
    assert all(row["gain"] > 1.2 for row in results["halo3d"])


@pytest.mark.machine
@pytest.mark.parametrize("mpi", MPIS)
def test_the_closing_line_names_each_kind_of_call(mpi, programs, tmp_path):
    require(paths().lib / f"liboffpath_mpi_{mpi}.so")
    command = mpirun(mpi, "-np", "2", str(programs / f"kinds_{mpi}"), str(tmp_path / "file"))
    result = succeeded(offpath("run", "--share", "--", *command, env=AS_ROOT))
    for kind in (
        "6 collectives, 0 offloaded, 6 native",
        "6 messages, 0 offloaded, 6 native (2 of 512 KiB or more, 4 shorter than 512 KiB)",
        "8 one-sided operations, 0 offloaded, 8 native", "10 blocking messages and 2 files native",
    ):  # fmt: skip
        assert kind in result.stderr, (kind, result.stderr)


@pytest.mark.parametrize(
    "environ, rank, size",
    [
        ({}, None, None),
        ({"PMI_RANK": "3", "PMI_SIZE": "4"}, 3, 4),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "4"}, 0, 4),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, 0, None),
        ({"OMPI_COMM_WORLD_RANK": "1", "SLURM_PROCID": "0", "OMPI_COMM_WORLD_SIZE": "2"}, 1, 2),
        ({"SLURM_NTASKS": "8"}, None, None),
    ],
)
def test_which_process_of_a_job_we_are(environ, rank, size):
    assert (own_rank.own_rank(environ), own_rank.job_size(environ)) == (rank, size)


def test_the_closing_line_names_the_step_of_slurm():
    rank = {"node": "n", "size": 1, "mpi": "mpich", "step": "7.1"}
    assert "1 rank on 1 node (MPICH, step 7.1): " in closing_line([rank])


NAMES = {"LD_PRELOAD": "x", "OFFPATH_POLICY": "a,b"}
LISTED = "LD_PRELOAD,OFFPATH_POLICY"


@pytest.mark.parametrize(
    "given, expected",
    [
        (["--export=NONE", "./a"], [f"--export={LISTED}", "./a"]),
        (["-n", "2", "--export", "HOME,X=1", "./a"], ["-n", "2", "--export", f"HOME,X=1,{LISTED}", "./a"]),
        (["--mpi=pmi2", "-Qn2", "--export=X=a", "./a"], ["--mpi=pmi2", "-Qn2", f"--export=X=a,{LISTED}", "./a"]),
        (["-ln", "2", "--quiet", "--export=NIL", "./a"], ["-ln", "2", "--quiet", f"--export={LISTED}", "./a"]),
        (["--export=ALL,X=1", "./a"], ["--export=ALL,X=1", "./a"]),
        (["-n", "2", "./a", "--export=NONE"], ["-n", "2", "./a", "--export=NONE"]),
        (["--quiet", "./a", "--export=NONE"], ["--quiet", "./a", "--export=NONE"]),
        (["--", "./a", "--export=NONE"], ["--", "./a", "--export=NONE"]),
        # Values that an option may have, but only in its own word.
        (["-K1", "--export=NONE", "./a"], ["-K1", f"--export={LISTED}", "./a"]),
        (["-Kn2", "-I10", "--export=NONE", "./a"], ["-Kn2", "-I10", f"--export={LISTED}", "./a"]),
        (["--nice", "--export=NONE", "./a"], ["--nice", f"--export={LISTED}", "./a"]),
        (["--bcast", "--export=NONE", "./a"], ["--bcast", f"--export={LISTED}", "./a"]),
        (["--bcast", "./a", "--export=NONE"], ["--bcast", "./a", "--export=NONE"]),
        (["--export=", "./a"], [f"--export={LISTED}", "./a"]),
        # Several programs in one step.
        (["./a", ":", "-n2", "--export=NONE", "./b"], ["./a", ":", "-n2", f"--export={LISTED}", "./b"]),
        (["--export=NONE", "./a", ":", "--export=X", "./b"],
         [f"--export={LISTED}", "./a", ":", f"--export=X,{LISTED}", "./b"]),
    ],
)  # fmt: skip
def test_srun_hands_our_variables_on_whatever_it_is_told(given, expected):
    assert injection.with_variables(["srun", *given], NAMES)[0] == ["srun", *expected]


@pytest.mark.parametrize("variable", ("SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV"))
@pytest.mark.parametrize("given, expected", [("NONE", LISTED), ("HOME", f"HOME,{LISTED}"), ("ALL", "ALL")])
def test_a_script_that_hands_nothing_on_still_hands_our_variables_on(variable, given, expected, monkeypatch):
    monkeypatch.setenv(variable, given)
    assert injection.with_variables(["srun", "./a"], NAMES)[1] == NAMES | {variable: expected}


@pytest.mark.parametrize("launcher", ["mpirun.openmpi", "mpirun.mpich", "srun"])
def test_the_jobs_secret_is_on_no_command_line(launcher, tmp_path, monkeypatch):
    """Where every user of the node reads it. The launcher has it in its environment."""
    monkeypatch.setattr("offpath.launch.mpis.launcher_kind", {"mpirun.openmpi": "openmpi", "mpirun.mpich": "mpich"}.get)
    chosen = {"OFFPATH_LOG": "info", "OFFPATH_JOB_SECRET": "sixteen letters!"}
    argv, extra = injection.with_variables([launcher, "./a"], chosen)
    assert "sixteen letters!" not in " ".join(argv) and extra["OFFPATH_JOB_SECRET"] == "sixteen letters!"
    assert argv[1:3] == ["-x", "OFFPATH_JOB_SECRET"] or launcher != "mpirun.openmpi"


def test_a_program_that_only_submits_is_refused(witness_env, tmp_path):
    (tmp_path / "sbatch").symlink_to("/bin/true")
    for command in (["run"], ["profile", "-o", str(tmp_path / "p")]):
        result = offpath(*command, "--", str(tmp_path / "sbatch"), "job.sh", env=witness_env)
        assert_one_line_error(result, "only submits", "`offpath run --` into the script")


def test_the_closing_line_tells_the_policy_from_what_the_service_does_not_do():
    def said(native, forms):
        return closing_line([{"node": "n", "size": 2, "native_count": native, "why": {"form_count": forms}}])

    forms = "in forms that the service does not do, such as user-defined operators"
    assert "3 native (3 by policy)" in said(3, 0)
    assert f"3 native (3 {forms})" in said(3, 3)
    assert f"5 native (2 by policy, 3 {forms})" in said(5, 3)


def test_lines_cut_short_are_left_out(tmp_path):
    file = tmp_path / "s"
    lines = [json.dumps({"rank": 0}), '{"rank": 1, "no', "[1]", '{"reason": "é']
    file.write_bytes("\n".join(lines).encode()[:-1])  # in the midst of a letter
    assert stats.read(file) == [{"rank": 0}]


def test_options_win_over_the_environment(programs, monkeypatch):
    monkeypatch.setenv("OFFPATH_PREFIX", str(programs / "prefix"))
    given = {"OFFPATH_POLICY": "a", "OFFPATH_LOG": "debug", "HOME": "/"}
    chosen = injection.variables(OffloadOptions(policy="b"), paths(), given)
    assert (chosen["OFFPATH_POLICY"], chosen["OFFPATH_LOG"], "HOME" in chosen) == ("b", "debug", False)
