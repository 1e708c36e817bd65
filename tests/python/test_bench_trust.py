# SPDX-License-Identifier: BSD-3-Clause
"""Why a benchmark's figures can be trusted: every timed repeat is checked, and what speaks against a result is said.

Operations that work at first and later do nothing leave the bytes of an earlier repeat in the buffers.
"""

import importlib
import inspect
import json
import re
import subprocess

import pytest
import typer
from bench_support import mpirun, program
from conftest import succeeded
from offpath.bench import goals, machine_load
from offpath.bench.commands import Benchmarks
from offpath.bench.kit.benchmark import Benchmark
from offpath.bench.machine_load import Look

LATE = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static int calls;
static int works(void) {
  const char* again = getenv("AGAIN");
  const int call = calls++;
  return call < atoi(getenv("WORKS")) || (again && call >= atoi(again));
}
int MPI_Finalize(void) {
  fprintf(stderr, "calls: %d\\n", calls);
  return PMPI_Finalize();
}
int MPI_Ibcast(void* b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request* r) {
  return works() ? PMPI_Ibcast(b, n, t, root, c, r) : PMPI_Ibarrier(c, r);
}
int MPI_Iallreduce(const void* s, void* d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request* r) {
  return works() ? PMPI_Iallreduce(s, d, n, t, o, c, r) : PMPI_Ibarrier(c, r);
}
int MPI_Ialltoall(const void* s, int n, MPI_Datatype t, void* d, int m, MPI_Datatype u, MPI_Comm c, MPI_Request* r) {
  return works() ? PMPI_Ialltoall(s, n, t, d, m, u, c, r) : PMPI_Ibarrier(c, r);
}
int MPI_Irecv(void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* r) {
  static char elsewhere[1 << 20];
  return PMPI_Irecv(works() ? b : elsewhere, n, t, from, tag, c, r);
}
int MPI_Put(const void* o, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w) {
  return works() ? PMPI_Put(o, n, t, r, d, m, u, w) : 0;
}
int MPI_Get(void* o, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w) {
  return works() ? PMPI_Get(o, n, t, r, d, m, u, w) : 0;
}
int MPI_File_iwrite_at(MPI_File f, MPI_Offset o, const void* b, int n, MPI_Datatype t, MPI_Request* r) {
  return works() ? PMPI_File_iwrite_at(f, o, b, n, t, r) : PMPI_Ibarrier(MPI_COMM_SELF, r);
}
int MPI_Fetch_and_op(const void* o, void* b, MPI_Datatype t, int r, MPI_Aint d, MPI_Op op, MPI_Win w) {
  return getenv("AGAIN") || works() ? PMPI_Fetch_and_op(o, b, t, r, d, op, w) : 0;  // a counter: who has what to do
}
"""
REPEATS = ["--repeats", "6", "--warmup", "1", "--verify", "--work-iterations", "1"]


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    library = tmp_path_factory.mktemp("late") / "late.so"
    compiler = ["mpicc.mpich", "-shared", "-fPIC", "-w", "-xc", "-", "-o", library]
    subprocess.run(compiler, input=LATE, text=True, check=True)
    return library


@pytest.mark.machine
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("collectives", ["--collective", "ibcast", "--sizes", "20000", *REPEATS]),
        ("collectives", ["--collective", "iallreduce", "--sizes", "20000", *REPEATS]),
        ("pt2pt", ["--pattern", "posted", "--sizes", "20000", *REPEATS]),
        ("pt2pt", ["--pattern", "unexpected_any_8", "--sizes", "2000", *REPEATS]),
        ("onesided", ["--operation", "put", "--sizes", "20000", "--targets", "idle", *REPEATS]),
        ("onesided", ["--operation", "get", "--sizes", "20000", "--targets", "idle", *REPEATS]),
        ("onesided", ["--operation", "fetch_and_op", "--targets", "idle", *REPEATS]),
        ("adapt", ["--turns", "4", "--phases", "2", "--bytes", "20000", "--work-iterations", "1"]),
    ],
)
def test_a_repeat_that_moved_nothing_is_a_wrong_result(name, arguments, late):
    def status(works):
        environment = ["env", f"LD_PRELOAD={late}", f"WORKS={works}"]
        return mpirun("mpich", 2, *environment, str(program("bench", "mpich", name)), *arguments).returncode

    assert status(10**6) == 0
    assert status(11) != 0  # timed ones, and neither the first nor the last


@pytest.mark.machine
@pytest.mark.parametrize(
    ("name", "arguments", "first"),
    [
        ("file_writes", ["--sizes", "20000", "--repeats", "6", "--work-iterations", "1", "--file"], 3),  # not hidden
        ("scale", ["--repeats", "4", "--communicators", "2", "--json"], 2),  # reductions
        ("scale", ["--repeats", "4", "--communicators", "2", "--json"], 7),  # exchanges
        ("scale", ["--repeats", "4", "--communicators", "2", "--json"], 22),  # messages
        ("scale", ["--repeats", "4", "--communicators", "2", "--json"], 27),  # puts
    ],
)
def test_nor_may_two_repeats_amid_the_others(name, arguments, first, late, tmp_path):
    def status(*settings):
        command = ["env", f"LD_PRELOAD={late}", *settings, str(program("bench", "mpich", name)), *arguments]
        return mpirun("mpich", 2, *command, str(tmp_path / "file")).returncode

    assert status(f"WORKS={10**6}") == 0
    assert status(f"WORKS={first}", f"AGAIN={first + 2}") != 0


@pytest.mark.machine
def test_a_wrong_product_is_found_though_the_last_is_right(late):
    """A block-sparse product of several repeats: in the second one tiles do not come."""
    arguments = ["--tile", "8", "--tiles", "6", "--repeats", "4", "--check"]
    path = str(program("apps", "mpich", "bspmm"))

    def run(*settings):
        return mpirun("mpich", 2, "env", f"LD_PRELOAD={late}", *settings, path, *arguments)

    right = succeeded(run("WORKS=0", "AGAIN=0"))
    calls = min(map(int, re.findall(r"calls: (\d+)", right.stderr)))  # of nine runs, one of them to warm up
    assert run(f"WORKS={calls // 3}", f"AGAIN={2 * calls // 3}").returncode != 0


def delivered(tmp_path, rows, checks=(), **meta):
    """The written result and the exit status of a benchmark that measured this."""
    file = tmp_path / "out.json"
    result = {"meta": {"runs": 3} | meta, "rows": rows}
    values = {each["name"]: lambda _, value=each["value"]: [value] for each in checks}
    with pytest.raises(typer.Exit) as ended:
        Benchmark([], values, aimed_at=lambda meta: bool(checks)).deliver(result, file)
    return json.loads(file.read_text()), ended.value.exit_code


GOOD = {"what": "ibcast", "bytes": 64, "verified": True, "efficiency": 0.9, "host_cpu_ns_per_byte": 0.1}


@pytest.mark.parametrize("module", Benchmarks.modules.values())
def test_every_benchmark_ends_in_the_one_place(module):
    found = importlib.import_module(module)
    assert isinstance(found.BENCHMARK, Benchmark) and "BENCHMARK.deliver(" in inspect.getsource(found)


def test_a_wrong_result_is_a_failed_check_and_an_exit_status(tmp_path, capsys):
    for wrong in (GOOD | {"verified": False}, {name: GOOD[name] for name in ("what", "bytes")}):  # or nobody looked
        written, status = delivered(tmp_path, [GOOD, wrong])
        assert status == 1
        assert written["checks"][-1] | {"goal": 0} == {
            "name": "results_wrong_count", "value": 1, "goal": 0, "met": False, "unjudged": None,
        }  # fmt: skip
        said = capsys.readouterr()
        assert "ibcast 64 bytes: WRONG RESULT" in said.err and "not met: results_wrong_count 1" in said.out
    written, status = delivered(tmp_path, [GOOD])
    assert status == 0 and written["checks"] == []


def test_one_launch_is_enough_for_a_wrong_result_only(tmp_path):
    checks = goals.check("openmp_map_us", [1.0])
    written, status = delivered(tmp_path, [GOOD, GOOD | {"verified": False}], checks, runs=1)
    assert [each["met"] for each in written["checks"]] == [None, False] and status == 1
    fewer, _ = delivered(tmp_path, [GOOD | {"runs": 1}, GOOD | {"runs": 3}], checks)  # two launches have failed
    assert fewer["checks"][0]["unjudged"] == goals.ONE_LAUNCH


@pytest.mark.parametrize(
    "impossible",
    [{"efficiency": 1.01}, {"reachable_efficiency": 1.2}, {"perfect": 1.02}, {"host_cpu_ns_per_byte": -0.1},
     {"service_cpu_ns": -5}, {"process_share": 1.1}],
)  # fmt: skip
def test_what_cannot_be_is_said_to_be_noise(tmp_path, capsys, impossible):
    delivered(tmp_path, [GOOD | impossible])
    ((name, _),) = impossible.items()
    assert f"noise: repeat ({name} " in capsys.readouterr().err
    delivered(tmp_path, [GOOD], reachable_efficiency={"1 MiB": 1.1})
    assert "noise: repeat (reachable efficiency 1.1 at 1 MiB" in capsys.readouterr().err


def test_a_thread_that_shares_the_ranks_core_may_wait_longer_alone_than_behind_computation(tmp_path, capsys):
    for peer in ("thread", "thread-yield", "async"):
        delivered(tmp_path, [GOOD | {"peer": peer, "efficiency": 2.8}])
    assert "noise" not in capsys.readouterr().err


QUIET = Look(load=0.1, ticks=(1000, 5), loop_share=0.999)


@pytest.mark.parametrize(
    ("begun", "ended", "word"),
    [
        (QUIET, Look(3.0, (2000, 6), 0.99), None),  # the load afterwards is the benchmark's own
        (Look(2.5, (1000, 5), 0.999), QUIET, "load average 2.5 on 2 cores"),
        (QUIET, Look(0.1, (2000, 105), 0.99), "10.0% of the processors' time were stolen"),
        (QUIET, Look(0.1, (2000, 5), 0.5), "a loop got 50% of its core"),
        (Look(0.1, (1000, 5), 0.8), QUIET, "a loop got 80% of its core"),
    ],
)
def test_a_busy_machine_is_noticed(begun, ended, word):
    said = machine_load.between(begun, ended, 2)["busy"]
    assert word in said[0] if word else said == []


def test_ranks_that_shared_their_cores_with_others_are_noticed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(machine_load, "_begun", QUIET)
    monkeypatch.setattr(Look, "now", classmethod(lambda _: QUIET))
    where = {"nodes": 2, "ppn": 1, "cores_available": 2}
    delivered(tmp_path, [GOOD | {"peer": "host", "work_share": 0.7}], **where)
    assert "the machine was busy: the computation got 70% of its core" in capsys.readouterr().err
    delivered(tmp_path, [GOOD | {"peer": "async", "work_share": 0.7}], **where)  # its thread is on that core
    delivered(tmp_path, [GOOD | {"peer": "host", "work_share": 0.7}], **(where | {"ppn": 2}))
    assert "busy" not in capsys.readouterr().err


def test_it_is_looked_at_and_said(tmp_path, capsys, monkeypatch):
    look = Look.now()
    assert 0 < look.loop_share <= 1 and look.ticks[0] > look.ticks[1] >= 0 and look.load >= 0
    monkeypatch.setattr(machine_load, "_begun", QUIET)
    monkeypatch.setattr(Look, "now", classmethod(lambda _: Look(0.1, (2000, 5), 0.5)))
    written, _ = delivered(tmp_path, [GOOD])
    assert written["meta"]["machine_load"]["loop_share_after"] == 0.5
    assert "the machine was busy: a loop got 50% of its core" in capsys.readouterr().err
