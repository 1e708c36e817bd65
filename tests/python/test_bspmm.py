# SPDX-License-Identifier: BSD-3-Clause
"""bspmm natively: the right product for any number of ranks, tiles and units, on MPI RMA and OpenSHMEM."""

import json
import subprocess

import pytest
from bench_support import mpirun, program
from conftest import succeeded

PROGRAMS = {"openmpi": ("openmpi", "bspmm"), "mpich": ("mpich", "bspmm"), "shmem": ("openmpi", "bspmm_shmem")}
# What Open MPI 4.1 needs for right results (one-sided, without RDMA), and not to die in shmem_finalize.
SETTINGS = ("OMPI_MCA_osc=sm,pt2pt", "OMPI_MCA_memory=^patcher")
ROWS = ["counter", "get", "compute", "update", "wait"]


def bspmm(library, np, *arguments):
    mpi, name = PROGRAMS[library]
    return mpirun(mpi, np, "env", *SETTINGS, str(program("apps", mpi, name)), *arguments)


@pytest.mark.grid(4)
@pytest.mark.parametrize("variant", ["blocking", "nonblocking"])
@pytest.mark.parametrize(("np", "tile", "tiles"), [(1, 5, 1), (2, 17, 6), (3, 8, 9), (4, 33, 3)])
@pytest.mark.parametrize("library", PROGRAMS)
def test_agrees_with_the_dense_reference(library, np, tile, tiles, variant, tmp_path):
    file = tmp_path / "out.json"
    result = succeeded(bspmm(
        library, np, "--tile", str(tile), "--tiles", str(tiles), "--variant", variant, "--repeats", "1", "--check",
        "--json", str(file),
    ))  # fmt: skip
    assert "verified: yes" in result.stdout
    written = json.loads(file.read_text())
    assert written["verified"] is True and written["error"] <= 1 and written["ranks"] == np
    half, quarter = (tiles + 1) // 2, (tiles - (tiles + 1) // 2 + 1) // 2
    blocks = (half, quarter, tiles - half - quarter)
    assert written["products_count"] == sum(block**3 for block in blocks)
    assert list(written["times_s"]) == ROWS
    assert written["times_s"]["compute"]["max"] <= written["t_total_s"]
    longest = max(written["t_compute_s"], written["t_communication_s"])
    assert written["efficiency"] == pytest.approx(longest / written["t_total_s"])


@pytest.mark.parametrize("unit", [0, 1, 4])
def test_units_of_any_size_make_the_same_product(unit, tmp_path):
    file = tmp_path / "out.json"
    result = bspmm("mpich", 3, "--tile", "6", "--tiles", "8", "--unit", str(unit), "--check", "--json", str(file))
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads(file.read_text())["units_count"] == {0: 24, 1: 80, 4: 24}[unit]


@pytest.mark.parametrize("library", ["mpich", "shmem"])
def test_a_wrong_update_is_found_out(library, tmp_path):
    """As far as it can be provoked from outside: an accumulate, or a put, that moves nothing."""
    nothing = {
        "mpich": "#include <mpi.h>\nint MPI_Accumulate(const void* o, int n, MPI_Datatype t, int r, MPI_Aint d,"
        " int m, MPI_Datatype u, MPI_Op p, MPI_Win w) { return 0; }\n",
        "shmem": "void shmem_double_put_nbi(double* d, const double* s, unsigned long n, int pe) {}\n",
    }
    preload = tmp_path / "broken.so"
    compiler = ["mpicc.mpich" if library == "mpich" else "gcc", "-shared", "-fPIC", "-w", "-xc", "-", "-o", preload]
    subprocess.run(compiler, input=nothing[library], text=True, check=True)
    mpi, name = PROGRAMS[library]
    path = program("apps", mpi, name)
    result = mpirun(
        mpi, 2, "env", f"LD_PRELOAD={preload}", *SETTINGS, str(path), "--tile", "8", "--tiles", "4", "--check"
    )
    assert result.returncode != 0 and "verified: no" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [["--tile", "0"], ["--tiles", "x"], ["--variant", "lazy"], ["--unit"], ["--nonsense", "1"], ["--repeats", "0"]],
)
def test_bad_arguments_are_one_line(arguments):
    result = bspmm("mpich", 2, *arguments)
    assert result.returncode != 0
    lines = [line for line in result.stderr.splitlines() if line.startswith("bspmm: ")]
    assert len(lines) == 1 and arguments[0] in lines[0]
    assert result.stdout == ""


def test_openshmem_takes_whole_tiles_only():
    result = bspmm("shmem", 2, "--unit", "2")
    assert result.returncode != 0 and "bspmm: --unit is not 0" in result.stderr
