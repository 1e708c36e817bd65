# SPDX-License-Identifier: BSD-3-Clause
"""bench/onesided natively, on MPI RMA and OpenSHMEM, and `offpath bench onesided` round it."""

import json
import subprocess
from types import SimpleNamespace

import pytest
from bench_support import assert_checks, assert_self_contained, mpirun, prefix_with, program
from conftest import assert_one_line_error, offpath, requires_root, succeeded
from offpath.base import console
from offpath.bench import measuring
from offpath.bench.kit import trust, turns
from offpath.bench.kit.turns import Site
from offpath.bench.suite import onesided as bench_onesided
from offpath.bench.suite.onesided import OF_A_WORD, OPERATIONS
from offpath.places import comparison
from rich.console import Console

SETTINGS = [f"{name}={value}" for name, value in bench_onesided.NATIVE.items()]
TINY = ["--repeats", "2", "--warmup", "1", "--piece-ns", "100000", "--verify"]

# Says that it is done and moves nothing.
BROKEN = """
#include <mpi.h>
int MPI_Put(const void* o, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w) { return 0; }
int MPI_Get(void* o, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w) { return 0; }
"""


def onesided(mpi, np, *arguments, name="onesided"):
    return mpirun(mpi, np, "env", *SETTINGS, str(program("bench", mpi, name)), *arguments)


def check_rows(file, operation, sizes, np):
    written = json.loads(file.read_text())
    assert written["operation"] == operation and written["piece_iterations"] > 0
    expected = [(size, target) for size in sizes for target in ("idle", "computing")]
    assert [(row["bytes"], row["target"]) for row in written["rows"]] == expected
    for row in written["rows"]:
        assert row["verified"] is True and row["ranks"] == np and row["service_cpu_ns"] == 0
        assert row["messages"] == (64 if operation == "put_rate" else 1)
        assert (row["target_piece_ns"] > 0) == (row["target"] == "computing")
        for time in ("t_pure", "t_compute", "t_total"):
            assert 0 < row[f"{time}_min_ns"] <= row[f"{time}_ns"] <= row[f"{time}_max_ns"]
    return written


@pytest.mark.grid(4)
@pytest.mark.machine
@pytest.mark.parametrize("np", [2, 4])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_verifies_and_writes_a_row_for_each_size_and_target(mpi, operation, np, tmp_path):
    file = tmp_path / "out.json"
    sizes = [8] if operation in OF_A_WORD else [1, 8, 70001]
    given = ["--operation", operation, "--sizes", ",".join(map(str, sizes))]
    work = ["--work-iterations", ",".join(["30"] * 2 * len(sizes))]
    succeeded(onesided(mpi, np, *given, *TINY, *work, "--json", str(file)))
    written = check_rows(file, operation, sizes, np)
    assert all(row["work_iterations"] == 30 and row["interface"] == "mpi" for row in written["rows"])


@pytest.mark.grid(2)
@pytest.mark.machine
@pytest.mark.parametrize("operation", OPERATIONS)
def test_openshmem(operation, tmp_path):
    file = tmp_path / "out.json"
    result = onesided("openmpi", 2, "--operation", operation, *TINY, "--json", str(file), name="onesided_shmem")
    assert result.returncode == 0, result.stderr
    written = check_rows(file, operation, [8], 2)
    assert all(row["interface"] == "shmem" for row in written["rows"])


@pytest.mark.machine
@pytest.mark.parametrize("operation", ["put", "get"])
def test_an_operation_that_does_nothing_is_found_out(operation, tmp_path):
    library = tmp_path / "broken.so"
    compiler = ["mpicc.mpich", "-shared", "-fPIC", "-w", "-xc", "-", "-o", library]
    subprocess.run(compiler, input=BROKEN, text=True, check=True)
    path = program("bench", "mpich", "onesided")
    arguments = ["--operation", operation, "--targets", "idle", "--repeats", "1", "--verify"]
    result = mpirun("mpich", 2, "env", f"LD_PRELOAD={library}", str(path), *arguments)
    assert result.returncode != 0
    assert "wrong result at size 8" in result.stderr


@pytest.mark.machine
@pytest.mark.parametrize(
    "arguments",
    [
        ["--sizes", "0"],
        ["--sizes", "1,,2"],
        ["--targets", "asleep"],
        ["--operation", "accumulate"],
        ["--operation", "fetch_and_op", "--sizes", "4"],
        ["--work-iterations", "1"],
        ["--repeats", "0"],
        ["--piece-ns"],
        ["--unknown"],
    ],
)
def test_refuses_bad_arguments_in_one_line(arguments):
    result = onesided("mpich", 2, *arguments)
    assert result.returncode != 0
    assert len([line for line in result.stderr.splitlines() if line.startswith("onesided: ")]) == 1, result.stderr
    assert result.stdout == ""


@pytest.mark.machine
def test_refuses_an_odd_number_of_ranks():
    result = onesided("mpich", 3)
    assert result.returncode != 0 and "onesided: 3 ranks" in result.stderr


prefix = prefix_with("bench", "onesided")


@requires_root
def test_command_in_a_lab(tmp_path):
    program("bench", "mpich", "onesided")
    file, page = tmp_path / "a.json", tmp_path / "a.html"
    result = succeeded(offpath(
        "bench", "onesided", "--rate", "1gbit", "--operations", "get,put_rate", "--sizes", "8,4K", "--runs", "1",
        "--repeats", "1", "--policy", "window:dpu", "--json", str(file), "--html", str(page),
    ))  # fmt: skip
    written = json.loads(file.read_text())
    found = [(row["mpi"], row["operation"], row["bytes"], row["target"], row["peer"]) for row in written["rows"]]
    assert found == [
        (mpi, operation, size, target, peer)
        for mpi in ("openmpi", "mpich")
        for operation, sizes in (("get", (8, 4096)), ("put_rate", (8,)))
        for size in sizes
        for target in ("idle", "computing")
        for peer in ("host", "async" if mpi == "mpich" else "thread", "offpath")
    ]
    assert all(row["verified"] and row["runs"] == 1 for row in written["rows"])
    assert written["meta"]["place"] == "lab" and written["meta"]["operations"] == ["get", "put_rate"]
    assert "12 launches, about" in result.stderr
    assert_checks(written, result, ["openmpi/mpi/onesided_computing_ratio", "mpich/mpi/onesided_computing_ratio"])
    assert_self_contained(page.read_text())


def recorded_rows(t_pure, verified=True):
    rows = []
    for target in ("idle", "computing"):
        row = {"bytes": 8, "messages": 1, "target": target, "interface": "mpi", "ranks": 2, "work_iterations": 5,
               "target_piece_ns": 7, "host_cpu_ns": 1, "service_cpu_ns": 2, "verified": verified}  # fmt: skip
        for time in measuring.TIMES:
            row |= {f"{time}_ns": t_pure, f"{time}_min_ns": t_pure - 1, f"{time}_max_ns": t_pure + 1}
        rows.append(row)
    return rows


def recorded(host, offloaded):
    (series,) = bench_onesided.chosen_series(["mpich"], False, ["get"], (8,), None)
    for peer, found in (("host", host), ("offpath", offloaded)):
        series.launches[peer].extend(map(recorded_rows, found))
    meta = {"mpi_versions": {"mpich": "1"}, "complete": True, "failures": []}
    return {"meta": meta, "rows": measuring.rows([series])}


def test_gain_is_of_medians_and_the_table_fits_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(console, "out", Console(width=80, highlight=False))
    result = recorded([400_000, 300_000, 500_000], [100_000, 300_000, 200_000])
    by_peer = {row["peer"]: row for row in result["rows"] if row["target"] == "computing"}
    assert bench_onesided.gain(by_peer) == 2
    bench_onesided.BENCHMARK.show(result)
    lines = capsys.readouterr().out.splitlines()
    assert any("8 B" in line and "2.00 x" in line for line in lines)
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    assert trust.exit_status(result) == 0


def test_gain_is_over_the_best_of_the_mpi_and_its_own_thread():
    (series,) = bench_onesided.chosen_series(["mpich"], False, ["get"], (8,), None, ["host", "async", "thread"])
    for peer, t_pure in (("host", 400), ("async", 150), ("offpath", 100)):
        series.launches[peer].append(recorded_rows(t_pure))
    rows = measuring.rows([series])
    assert [row["peer"] for row in rows] == ["host", "async", "offpath"] * 2
    assert bench_onesided.gain({row["peer"]: row for row in rows[:3]}) == 1.5


def test_without_offpath_rows_there_is_no_gain(capsys):
    result = recorded([400], [])
    bench_onesided.BENCHMARK.show(result)
    assert " x" not in capsys.readouterr().out
    assert_self_contained(bench_onesided.BENCHMARK.html(result))


@pytest.mark.parametrize(
    ("rank", "counts"),
    [
        ({"offloaded_count": 0, "windows": {"offloaded_count": 1, "operations_count": 0}}, False),
        ({"offloaded_count": 0, "windows": {"offloaded_count": 1, "operations_count": 3}}, True),
        ({"offloaded_count": 3}, True),  # as OpenSHMEM's front end counts
    ],
)
def test_a_launch_that_offloaded_nothing_is_a_failed_one(monkeypatch, rank, counts):
    monkeypatch.setattr(measuring, "paths", lambda: SimpleNamespace(bench_program=lambda *_: "onesided"))
    launched = comparison.Launch({"rows": recorded_rows(400), "piece_iterations": 1}, [rank], None)
    monkeypatch.setattr(comparison, "launch_for_json", lambda *_: launched)
    (series,) = bench_onesided.chosen_series(["mpich"], False, ["get"], (8,), None)
    failures = turns.measure([Site([series.round(1)])], 1)["failures"]
    assert [len(series.launches[peer]) for peer in ("host", "offpath")] == [1, int(counts)]
    assert ["nothing was offloaded" in failure["problem"] for failure in failures] == [True] * (not counts)


def test_threads_of_an_mpi_are_no_peers_of_openshmem():
    asked = ["thread", "thread-yield", "async"]
    found = bench_onesided.chosen_series(["openmpi"], True, ["put"], (8,), None, asked)
    assert [[peer.name for peer in series.peers] for series in found] == [
        ["host", "thread", "thread-yield", "offpath"], ["host", "offpath"],
    ]  # fmt: skip
    for peer in (peer for series in found for peer in series.peers):
        assert set(bench_onesided.NATIVE.items()) <= set(peer.env.items())
        assert ("OMPI_MCA_btl_tcp_progress_thread" in peer.env) == peer.name.startswith("thread")


def test_both_sides_have_the_same_settings_and_work():
    for series in bench_onesided.chosen_series(["openmpi"], True, ["put"], (8,), "x:dpu"):
        host, offloaded = series.peers
        assert dict(offloaded.env) == dict(host.env) | {"OFFPATH_POLICY": "x:dpu"}
        assert host.arguments == offloaded.arguments
        assert series.program.carried == ("piece_iterations",)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--operations", "swap"], "swap"),
        (["--nodes", "3"], "3 ranks"),
        (["--sizes", "2G"], "2G"),
        (["--peers", "tests"], "tests"),
        (["--mpi", "openmpi", "--peers", "async"], "Open MPI has no peer async"),
    ],
)
def test_bad_arguments_are_one_line(prefix, arguments, word):
    assert_one_line_error(offpath("bench", "onesided", *arguments, env=prefix), word)
