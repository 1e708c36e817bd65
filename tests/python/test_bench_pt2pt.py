# SPDX-License-Identifier: BSD-3-Clause
"""bench/messages on its own, and `offpath bench pt2pt` round it."""

import json
import subprocess

import pytest
from bench_support import assert_self_contained, mpirun, prefix_with, program
from conftest import assert_one_line_error, offpath, requires_root, succeeded
from offpath.bench import measuring
from offpath.bench.measuring import ALONE
from offpath.bench.suite import pt2pt as bench_pt2pt

# Receives nothing.
BROKEN = """
#include <mpi.h>
int MPI_Irecv(void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* r) {
  static char elsewhere[1 << 16];
  return PMPI_Irecv(elsewhere, n, t, from, tag, c, r);
}
"""


def pt2pt(mpi, np, *arguments):
    return mpirun(mpi, np, program("bench", mpi, "pt2pt"), *arguments)


@pytest.mark.grid(4)
@pytest.mark.machine
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("pattern", bench_pt2pt.PATTERNS)
def test_verifies_and_writes_a_row_for_each_size(mpi, pattern, tmp_path):
    file = tmp_path / "out.json"
    succeeded(pt2pt(
        mpi, 2, "--pattern", pattern, "--sizes", "1,140001", "--repeats", "2", "--warmup", "1", "--verify", "--tests",
        "3", "--work-iterations", "3,40", "--json", str(file),
    ))  # fmt: skip
    written = json.loads(file.read_text())
    assert written["pattern"] == pattern and written["tests"] == 3
    assert [(row["bytes"], row["work_iterations"]) for row in written["rows"]] == [(1, 3), (140001, 40)]
    for row in written["rows"]:
        assert row["verified"] is True and row["ranks"] == 2 and row["service_cpu_ns"] == 0
        for time in measuring.TIMES:
            assert 0 < row[f"{time}_min_ns"] <= row[f"{time}_ns"] <= row[f"{time}_max_ns"]


@pytest.mark.machine
def test_messages_that_go_elsewhere_are_found_out(tmp_path):
    library = tmp_path / "broken.so"
    compiler = ["mpicc.mpich", "-shared", "-fPIC", "-w", "-xc", "-", "-o", library]
    subprocess.run(compiler, input=BROKEN, text=True, check=True)
    arguments = ["--pattern", "posted_8", "--sizes", "64", "--repeats", "1", "--verify", "--work-iterations", "1"]
    result = mpirun("mpich", 2, "env", f"LD_PRELOAD={library}", str(program("bench", "mpich", "pt2pt")), *arguments)
    assert result.returncode != 0
    assert "pt2pt: wrong result at size 64" in result.stderr


@pytest.mark.machine
def test_refuses_an_odd_number_of_ranks_and_unknown_patterns():
    for np, arguments, word in ((3, [], "3 ranks"), (2, ["--pattern", "late"], "late")):
        result = pt2pt("mpich", np, *arguments)
        assert result.returncode != 0 and result.stdout == ""
        (line,) = [line for line in result.stderr.splitlines() if line.startswith("pt2pt: ")]
        assert word in line


@requires_root
def test_command_in_a_lab(tmp_path):
    program("bench", "mpich", "pt2pt")
    file, page = tmp_path / "a.json", tmp_path / "a.html"
    result = succeeded(offpath(
        "bench", "pt2pt", "--patterns", "posted,unexpected_any_8", "--sizes", "8,64K", "--most", "256K", "--runs", "1",
        "--repeats", "1", "--peers", "host", "--policy", "send:4K-inf:dpu", "--json", str(file), "--html", str(page),
    ))  # fmt: skip
    written = json.loads(file.read_text())
    found = [(row["mpi"], row["pattern"], row["bytes"], row["peer"]) for row in written["rows"]]
    assert found == [
        (mpi, pattern, size, peer)
        for mpi in ("openmpi", "mpich")
        for pattern, size in (("posted", 8), ("posted", 64 << 10), ("unexpected_any_8", 8))
        for peer in ("host", "offpath")
    ]
    assert all(row["verified"] and row["runs"] == 1 for row in written["rows"])
    # What was offloaded was done by services: those of the MPI alone have none.
    long = {row["peer"]: row["service_cpu_ns"] for row in written["rows"] if row["bytes"] == 64 << 10}
    assert long["host"] == 0 < long["offpath"]
    assert written["meta"]["place"] == "lab" and written["meta"]["policy"] == "send:4K-inf:dpu"
    assert written["checks"] == [] and result.stdout.splitlines()[-1].startswith("checks: none")
    assert "8 launches, about" in result.stderr and "pattern" not in result.stderr
    assert_self_contained(page.read_text())


def test_eight_at_a_time_are_left_out_where_they_are_too_many():
    sizes = (8, 1 << 20, 16 << 20)
    series = bench_pt2pt.chosen_series(["mpich"], ["posted", "posted_8"], sizes, 16 << 20, (ALONE,))
    assert [(each.name, each.sizes, each.messages) for each in series] == [
        ("posted", sizes, 1), ("posted_8", (8, 1 << 20), 8),
    ]  # fmt: skip
    estimates = [measuring.estimate_s([each], 1, 10, 1e9) - measuring.START_S for each in series]
    assert estimates[1] == pytest.approx(estimates[0] * 8 * (8 + (1 << 20)) / sum(sizes))


prefix = prefix_with("bench", "pt2pt")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(["--patterns", "late"], "late"), (["--nodes", "3"], "3 ranks"), (["--sizes", "16M", "--most", "1M"], "1 MiB")],
)
def test_bad_arguments_are_one_line(prefix, arguments, word):
    assert_one_line_error(offpath("bench", "pt2pt", *arguments, env=prefix), word)
