# SPDX-License-Identifier: BSD-3-Clause
"""The program bench/collectives on its own: each collective is checked, wrong results and arguments are noticed."""

import json
import subprocess

import pytest
from bench_support import mpirun, program
from conftest import succeeded
from offpath.bench.measuring import COLLECTIVES

# Says that it is done and moves nothing.
BROKEN = """
#include <mpi.h>
int MPI_Ibcast(void* b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request* r) { return MPI_Ibarrier(c, r); }
int MPI_Iallreduce(const void* s, void* d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request* r) {
  return MPI_Ibarrier(c, r);
}
"""


def collectives(mpi, np, *arguments):
    return mpirun(mpi, np, program("bench", mpi, "collectives"), *arguments)


@pytest.mark.grid(4)
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("np", [1, 3])
def test_verifies_and_writes_a_row_for_each_size(mpi, collective, np, tmp_path):
    file = tmp_path / "out.json"
    succeeded(collectives(
        mpi, np, "--collective", collective, "--sizes", "1,12297", "--repeats", "2", "--warmup", "1", "--verify",
        "--tests", "3", "--work-iterations", "3,40", "--json", str(file),
    ))  # fmt: skip
    written = json.loads(file.read_text())
    assert written["collective"] == collective and written["tests"] == 3
    assert [row["bytes"] for row in written["rows"]] == [1, 12297]
    assert [row["work_iterations"] for row in written["rows"]] == [3, 40]
    for row in written["rows"]:
        assert row["verified"] is True and row["ranks"] == np and row["service_cpu_ns"] == 0
        for time in ("t_pure", "t_compute", "t_total"):
            assert 0 < row[f"{time}_min_ns"] <= row[f"{time}_ns"] <= row[f"{time}_max_ns"]


@pytest.mark.parametrize("collective", ["ibcast", "iallreduce"])
def test_a_collective_that_does_nothing_is_found_out(collective, tmp_path):
    library = tmp_path / "broken.so"
    compiler = ["mpicc.openmpi", "-shared", "-fPIC", "-xc", "-", "-o", library]
    subprocess.run(compiler, input=BROKEN, text=True, check=True)
    path = program("bench", "openmpi", "collectives")
    arguments = ["--collective", collective, "--sizes", "64", "--repeats", "1", "--verify", "--work-iterations", "1"]
    result = mpirun("openmpi", 2, "env", f"LD_PRELOAD={library}", str(path), *arguments)
    assert result.returncode != 0
    assert "wrong result at size 64" in result.stderr


def test_sets_the_work_itself(tmp_path):
    file = tmp_path / "out.json"
    assert collectives("mpich", 2, "--sizes", "65536", "--repeats", "1", "--json", str(file)).returncode == 0
    row = json.loads(file.read_text())["rows"][0]
    assert row["work_iterations"] > 0
    assert row["verified"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sizes", "0"],
        ["--sizes", "1,,2"],
        ["--sizes", "2000000000"],
        ["--repeats", "0"],
        ["--tests", "-1"],
        ["--work-ns", "1,2,3"],
        ["--work-ns", "1,1", "--work-iterations", "1,1"],
        ["--collective", "bcast"],
        ["--sizes"],
        ["--unknown"],
    ],
)
def test_refuses_bad_arguments_in_one_line(arguments):
    result = collectives("mpich", 3, *arguments)
    assert result.returncode != 0
    assert len([line for line in result.stderr.splitlines() if line.startswith("collectives: ")]) == 1, result.stderr
    assert result.stdout == ""
