# SPDX-License-Identifier: BSD-3-Clause
"""`offpath selftest`: what it says of nodes, of launchers, and of runs on nodes where something is in the way."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import (
    LIMIT_S,
    PROGRAMS,
    ROOT,
    assert_one_line_error,
    captured,
    eventually,
    offpath,
    require,
    requires_root,
)
from offpath.base.paths import paths
from offpath.bench import selftest_nodes, selftest_runs
from offpath.bench.fault_verdicts import ERROR, RIGHT, WRONG, Ended
from offpath.bench.selftest_nodes import LOSS, NO, OK
from offpath.places import allocation

GIB = 1 << 30


def node(name, **other):
    return {
        "rank": 0, "node": name, "arch": "x86_64", "processor": "one", "cores": 4, "allowed": [0, 1, 2, 3],
        "quota": None, "missing": [], "version": "1", "content": "a", "time_s": 1e9, "clock": "tsc", "not_read": None,
        "ptrace_scope": "1", "not_shared": None, "shm_bytes": GIB, "runtime": None, "rdma": [], "locked_bytes": None,
        "open_files": None,
    } | other  # fmt: skip


def test_nodes_with_nothing_in_the_way():
    rows = selftest_nodes.rows([node("a"), node("b")])
    assert {row.verdict for row in rows} == {OK} and not any(row.do for row in rows)
    assert rows[0].found == "2 (a, b), 2 ranks" and "no network" in selftest_nodes.rows([node("a")])[0].found


@pytest.mark.parametrize(
    "bad, what, verdict, words",
    [
        ({"cores": 8}, "nodes", LOSS, ("a: x86_64, one, 4 cores; b:", "one kind")),
        ({"missing": ["/x/offpathd"]}, "parts", NO, ("/x/offpathd is not on b", "same path")),
        ({"version": "2"}, "parts", NO, ("a: Offpath 1; b: Offpath 2", "one release")),
        ({"content": "b"}, "parts", NO, ("Offpath 1, but of other builds",)),
        ({"quota": 1.5}, "processor time", LOSS, ("1.5 for 1 ranks", "cpu.max")),
        ({"not_read": "no", "ptrace_scope": "3"}, "memory of ranks", NO, ("on b (no;", "b: ptrace_scope 3", "0 or 1")),
        ({"not_shared": "no"}, "shared memory", NO, ("no memfd on b",)),
        ({"shm_bytes": 1 << 20}, "shared memory", LOSS, ("b: 1.0 MiB free", "in /dev/shm on b")),
        ({"shm_bytes": None}, "shared memory", LOSS, ("in /dev/shm on b",)),
        ({"runtime": "/tmp/x: full"}, "runtime folder", NO, ("b: /tmp/x: full", "OFFPATH_RUNTIME_DIR")),
        ({"open_files": 1024}, "open files", LOSS, ("b: up to 1024", "limit on b")),
        ({"rdma": ["mlx5_0"], "locked_bytes": 65536}, "locked memory", LOSS, ("64.0 KiB", "memlock")),
        ({"clock": "hpet"}, "clocks", LOSS, ("b: hpet", "slow on b")),
        ({"time_s": 1e9 + 400}, "clocks", LOSS, ("400 s apart", "MUNGE")),
    ],
)
def test_what_is_in_the_way_on_a_node(bad, what, verdict, words):
    others = [row for row in selftest_nodes.rows([node("a"), node("b", **bad)]) if row.verdict != OK]
    assert [(row.what, row.verdict) for row in others] == [(what, verdict)]
    assert others[0].do and all(word in f"{others[0].found} {others[0].do}" for word in words), others


def test_many_nodes_are_not_all_named():
    facts = [node(f"n{number:03}", clock="hpet") for number in range(100)]
    [row] = [row for row in selftest_nodes.rows(facts) if row.verdict != OK]
    assert row.do.startswith("Reading it is slow on n000, n001, n002, n003 and 96 more")


def test_launchers_print_garbage():
    good, start = json.dumps(node("a")), allocation.START
    text = (
        f"\x00{start}\nsrun: {start}7\n{start}[1]\n{start}{{}}\n[0] {start}{good} [end]{start}{good}{start}{good[:9]}"
    )
    assert [each["node"] for each in allocation.facts_of(text)] == ["a", "a"]


def run(verdict=RIGHT, said="", ranks=(), log=""):
    return selftest_runs.Run(Ended(verdict, said=said), list(ranks), "", log)


def test_why_a_run_is_not_right():
    assert run(WRONG, "faults: WRONG").problem == "faults: WRONG"
    log = "1.2 34 info: serving\n1.2 34 warn: first\n1.3 34 warn: last: no card\n"
    assert run(ranks=[{"rank": 0, "reason": "a cause"}], log=log).problem == "a cause"
    assert run(ranks=[{"rank": 0, "reason": ""}], log=log).problem == "last: no card"
    assert run().problem == "no rank loaded Offpath" and run(ranks=[{"rank": 0}]).problem == "no rank said why"
    assert not run(ranks=[{"offloaded_count": 0}]).is_right and run(ranks=[{"offloaded_count": 1}]).is_right
    assert not run(WRONG, ranks=[{"offloaded_count": 1}]).is_right


def test_cards_that_carry_nothing_are_not_praised(monkeypatch):
    monkeypatch.delenv(selftest_runs.FABRIC, raising=False)
    works = run(ranks=[{"offloaded_count": 1}])
    monkeypatch.setattr(selftest_runs, "_run", lambda where, offload, env: works)
    assert [(row.what, row.verdict) for row in selftest_runs._networks(None, True, works)] == [
        ("network rdma", OK), ("network tcp", OK), ("network ucx", OK),
    ]  # fmt: skip
    log = "1.2 34 warn: the RDMA device does not reach that of peer service 1\n"
    warned = run(ranks=[{"offloaded_count": 1}], log=log)
    rows = list(selftest_runs._networks(None, True, warned))
    assert rows[0].verdict == LOSS and "does not reach" in rows[0].found and rows[1].verdict == OK
    refused = run(log="1.2 34 warn: this Offpath was built without the fabric 'ucx'.\n")
    monkeypatch.setattr(selftest_runs, "_run", lambda where, offload, env: refused)
    assert [row.what for row in selftest_runs._networks(None, False, works)] == ["network tcp"]


KILLED = [
    (run(ranks=[{"offloaded_count": 1}]), True, OK, "goes on"),
    (run(ranks=[{"offloaded_count": 1}]), False, NO, "no service was there to be killed"),
    (run(WRONG, "faults: WRONG on rank 0"), True, NO, "WRONG on rank 0"),
    (run(ERROR, "Offpath: lost"), True, LOSS, "an error of its MPI: Offpath: lost"),
]


@pytest.mark.parametrize("ended, struck, verdict, words", KILLED)
def test_what_is_said_after_a_kill(ended, struck, verdict, words, monkeypatch, tmp_path):
    def runs(where, offload, env, more):
        if struck:
            (Path(env["OFFPATH_SERVICE_WRAPPER"].split()[-1]) / "killed").touch()
        return ended

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(selftest_runs, "_run", runs)
    row = selftest_runs._killed("killed", None)
    assert row.verdict == verdict and words in row.found and bool(row.do) == (verdict != OK)


def test_a_service_is_killed_once_its_program_is_under_way(tmp_path):
    """And what takes its place is not. Nobody holds what the service had open."""
    command = [sys.executable, selftest_runs.STRIKE, tmp_path, "sh", "-c", "echo $$ >&9; exec sleep 1000"]
    read, write = os.pipe()
    first = subprocess.Popen(["sh", "-c", 'exec "$@" 9>&0', "sh", *command], stdin=write)
    os.close(write)
    assert int(os.read(read, 20)) == first.pid  # as a client knows it
    assert first.poll() is None and not (tmp_path / "until").exists()
    (tmp_path / "ready").touch()
    assert os.read(read, 20) == b"" and first.wait(LIMIT_S) == -signal.SIGKILL
    eventually((tmp_path / "until").exists)
    assert subprocess.run([*command[:3], "sh", "-c", "sleep 0.2; exit 3"], check=False).returncode == 3


@pytest.fixture
def built():
    for mpi in ("openmpi", "mpich"):
        require(paths().service, paths().backend_library(mpi))


def test_launchers_that_start_nothing(built, tmp_path):
    launcher = tmp_path / "mpirun"
    launcher.write_text(
        '#!/bin/sh\n[ "$1" != --version ] || { echo "(Open MPI) 4.1"; exit; }\necho no route >&2; exit 7\n'
    )
    launcher.chmod(0o755)
    result = offpath("selftest", "--launch", str(launcher), cwd=tmp_path)
    assert_one_line_error(result, "did not start anything (no route; exit 7)", "hostname")
    assert_one_line_error(offpath("selftest", "--launch", "no-such-launcher"), "was not found")
    assert_one_line_error(offpath("selftest", "--launch", ""), "is empty")
    launcher.write_text(
        launcher.read_text().replace("echo no route", f"echo '{allocation.START}{json.dumps(node('a'))}'; exit; ")
    )
    assert_one_line_error(
        offpath("selftest", "--launch", str(launcher), cwd=tmp_path), "starts one rank", "two or more"
    )


def found(result):
    """The rows by what they are about; the status has to fit them."""
    said = json.loads(result.stdout)
    rows = {row["what"]: row for row in said["rows"]}
    works = not any(row["verdict"] == NO for row in rows.values())
    assert said["works"] == works and result.returncode == (0 if works else 1), (result.stdout, result.stderr)
    return rows


TWO = {"openmpi": "mpirun.openmpi --oversubscribe --bind-to none -np 2", "mpich": "mpirun.mpich -np 2"}
TITLES = {"openmpi": "Open MPI", "mpich": "MPICH"}


def selftest(tmp_path, mpi, *behind, env=None):
    launch = f"{TWO[mpi]} {shlex.join(map(str, behind))}"
    return found(offpath("selftest", "--json", "--launch", launch, cwd=tmp_path, env=env))


@pytest.mark.machine
def test_here(built, tmp_path):
    """With what the machine has: two cores leave none for a service, so it shares those of the ranks."""
    rows = found(offpath("selftest", "--json", cwd=tmp_path))
    bad = {what: row for what, row in rows.items() if row["verdict"] == NO}
    assert not bad
    for title in TITLES.values():
        assert "operations were offloaded" in rows[f"{title}, offloaded"]["found"]
        assert "goes on" in rows[f"{title}, a service is killed"]["found"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.machine
def test_where_memory_of_others_is_not_read(built, tmp_path):
    rows = selftest(tmp_path, "openmpi", sys.executable, PROGRAMS / "forbidding.py")
    assert rows["memory of ranks"]["verdict"] == NO and "ptrace_scope" in rows["memory of ranks"]["do"]
    assert rows["Open MPI"]["verdict"] == OK
    said = rows["Open MPI, offloaded"]["found"]
    assert "nothing was offloaded" in said and "ptrace is restricted" in said


@pytest.mark.machine
def test_a_runtime_folder_that_others_can_use(built, tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    rows = selftest(tmp_path, "openmpi", env={"OFFPATH_RUNTIME_DIR": str(tmp_path / "open")})
    assert rows["runtime folder"]["verdict"] == NO and "only its owner" in rows["runtime folder"]["found"]
    assert rows["Open MPI, offloaded"]["verdict"] == NO


@pytest.mark.machine
def test_ranks_that_are_jobs_of_their_own(built, tmp_path):
    """Another MPI's launcher starts them."""
    fake = tmp_path / "mpirun"
    fake.write_text(f'#!/bin/sh\n[ "$1" != --version ] || {{ echo "(Open MPI) 4.1"; exit; }}\n'
                    f'while [ "$1" = -x ]; do export "$2"; shift 2; done\nexec {TWO["mpich"]} "$@"\n')  # fmt: skip
    fake.chmod(0o755)
    rows = found(offpath("selftest", "--json", "--launch", str(fake), cwd=tmp_path))
    assert rows["Open MPI"]["verdict"] == NO and "do not find each other" in rows["Open MPI"]["found"]


@pytest.mark.machine
@requires_root
def test_another_version_on_one_node(built, tmp_path):
    """It is another file that stands there, as on a node that was not installed anew."""
    other = tmp_path / "offpathd"
    other.write_text("#!/bin/sh\necho offpathd 0.1.0\n")
    other.chmod(0o755)
    script = tmp_path / "second"
    bound = f"""mount --bind {other} {paths().service} && exec "$@"'"""
    script.write_text(f"""#!/bin/sh\n[ "$PMI_RANK" = 1 ] || exec "$@"\nexec unshare -m sh -c '{bound} sh "$@"\n""")
    script.chmod(0o755)
    rows = selftest(tmp_path, "mpich", script)
    assert rows["parts"]["verdict"] == NO and "Offpath 0.1.0" in rows["parts"]["found"]


@pytest.mark.machine
@requires_root
def test_where_shared_memory_of_the_node_is_full(built, tmp_path):
    """Offpath needs none, Open MPI manages without, and MPICH does not run, natively either."""
    command = [str(ROOT / "offpath"), "selftest", "--json"]
    script = f"mount -t tmpfs -o size=64k none /dev/shm; exec {shlex.join(command)}"
    done = captured(["unshare", "-m", "sh", "-c", script], cwd=tmp_path)
    rows = found(done)
    assert rows["shared memory"]["verdict"] == LOSS and "64.0 KiB free in /dev/shm" in rows["shared memory"]["found"]
    assert rows["Open MPI, offloaded"]["verdict"] == OK and rows["MPICH"]["verdict"] == NO


@pytest.mark.machine
@requires_root
def test_a_user_who_is_not_root(built):
    nobody = 65534
    become = ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups"]
    if subprocess.run([*become, "test", "-x", ROOT / "offpath"], cwd="/", check=False).returncode:
        pytest.skip("nobody may not read this tree")
    with tempfile.TemporaryDirectory(prefix="offpath-", dir="/var/tmp") as folder:
        os.chown(folder, nobody, nobody)
        env = {"HOME": folder, "TMPDIR": folder, "OFFPATH_RUNTIME_DIR": f"{folder}/run", "XDG_RUNTIME_DIR": ""}
        command = [*become, ROOT / "offpath", "selftest", "--json", "--mpi", "mpich"]
        done = captured(command, cwd=folder, env=os.environ | env)
        rows = found(done)
    assert rows["MPICH, offloaded"]["verdict"] == rows["MPICH, a service is killed"]["verdict"] == OK, rows


@pytest.mark.machine
@requires_root
@pytest.mark.parametrize("mpi", TITLES)
def test_on_two_nodes(built, lab, mpi, tmp_path):
    (tmp_path / "hosts").write_text("node1\nnode2\n")
    layout = "--map-by ppr:1:node -hostfile hosts" if mpi == "openmpi" else "-ppn 1 -f hosts"
    command = ["lab", "exec", "--name", lab.name, "head", "--", str(ROOT / "offpath"), "selftest", "--json"]
    # MPICH before 4.2 can hang in MPI_Finalize by itself (bench/yield_shim.c).
    env = {"LD_PRELOAD": str(paths().yield_library), "OFFPATH_LAB_YIELD": "0"} if mpi == "mpich" else {}
    done = offpath(*command, "--launch", f"mpirun.{mpi} -np 2 {layout}", env=env, cwd=tmp_path)
    rows = found(done)
    assert rows["nodes"]["found"] == "2 (node1, node2), 2 ranks"
    assert rows["network tcp"]["verdict"] == OK and rows["network ucx"]["verdict"] == OK, rows
    assert rows[f"{TITLES[mpi]}, a service is killed"]["verdict"] == OK, rows
