# SPDX-License-Identifier: BSD-3-Clause
"""Programs that know nothing of Offpath compute the same with it, and their collectives were in fact offloaded.

All of it on this machine's one node; the long ones with OFFPATH_TEST_FULL=1 (make nightly).
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import real_programs
from conformance_support import EVERYTHING, FULL, LIMIT_S, MPIS, NATIVE, offloaded_counts
from offpath.base.processes import Completed
from offpath.launch.local import local_mpirun

OFFLOAD = EVERYTHING | {"OFFPATH_MPI_BLOCKING": "all"}
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
GRID = 100 if FULL else 40


def numbers_of(lines: Sequence[str]) -> list[float]:
    return [float(number) for line in lines for number in NUMBER.findall(line)]


def assert_same_numbers(
    mpi: str, ranks: int, argv: Sequence[str], lines: Callable[[Completed], list[str]], names: Sequence[str], env=None
) -> None:
    """`lines` picks what counts from the program's output; `names` must have been offloaded. Sums of real numbers may
    be bracketed in another way, and iterations carry that on, hence not the same bits."""
    results = []
    for offload in (False, True):
        variables = NATIVE | (env or {}) | (OFFLOAD if offload else {})
        result = local_mpirun(mpi, ranks, argv, offload=offload, env=variables, timeout=LIMIT_S)
        assert result.returncode == 0, f"offload={offload}\n{result.stdout[-2000:]}\n{result.stderr[-3000:]}"
        results.append((numbers_of(lines(result)), result))
    (expected, _), (got, result) = results
    assert expected, "the output was not understood"
    assert got == pytest.approx(expected, rel=1e-3)
    assert all(rank["failed_count"] == 0 for rank in result.stats)
    counts = offloaded_counts(result.stats)
    assert all(counts[name] > 0 for name in names), counts


def lines_with(*words: str) -> Callable[[Completed], list[str]]:
    return lambda result: [line for line in result.stdout.splitlines() if any(word in line for word in words)]


@pytest.mark.grid(1)
@pytest.mark.parametrize("example", ("ex2.c", "ex2f.F90"))
def test_petsc_pipelined_conjugate_gradients(example, tmp_path):
    """One MPI_Iallreduce for each iteration, overlapped with the rest of it; in C and in Fortran."""
    program = real_programs.petsc(tmp_path, example)
    argv = [program, "-m", str(GRID), "-n", str(GRID), "-ksp_type", "pipecg", "-pc_type", "jacobi"]
    argv += ["-ksp_converged_reason", "-sf_type", "basic"]
    assert_same_numbers("openmpi", 4, argv, lines_with("iterations"), ["iallreduce", "ibcast"])


def test_petsc_neighbourhood(tmp_path):
    """The ghost points of a grid by MPI_Ineighbor_alltoallv."""
    argv = [real_programs.petsc(tmp_path, "ex50.c"), "-da_grid_x", str(GRID), "-da_grid_y", str(GRID)]
    argv += [
        "-ksp_type", "pipecg", "-pc_type", "jacobi", "-sf_type", "neighbor", "-ksp_monitor_short", "-ksp_max_it", "40"
    ]
    assert_same_numbers("openmpi", 4, argv, lines_with("Residual norm"), ["iallreduce", "ineighbor_alltoallv"])


@pytest.mark.nightly
@pytest.mark.parametrize("name", ("xdqr", "xzllt", "xdlu", "xdsyevr"))
@pytest.mark.parametrize("mpi", MPIS)
def test_scalapack(mpi, name, tmp_path):
    """Fortran; thousands of small blocking broadcasts and reductions on rows and columns of process grids."""
    argv = real_programs.scalapack(tmp_path, mpi, name)
    assert_same_numbers(mpi, 4, argv, lines_with("tests completed", "tests, with"), ["ibcast", "iallreduce"])


@pytest.mark.nightly  # computes for more than a minute
def test_hpcc(tmp_path):
    """HPC Challenge: Linpack, a transpose, a parallel FFT by MPI_Alltoall, updates in random places."""

    def outcome(result: Completed) -> list[str]:
        file = Path(tmp_path / "hpccoutf.txt")
        wanted = ("Success=", "_Errors=", "PTRANS_residual=", "MPIFFT_N=", "MPIRandomAccess_N=")
        lines = [line.split("=")[1] for line in file.read_text().splitlines() if any(word in line for word in wanted)]
        file.unlink()
        assert lines[-1] == "1" or "1" in lines, "hpcc says that it failed"
        return lines

    assert_same_numbers("openmpi", 4, real_programs.hpcc(tmp_path), outcome, ["ialltoall", "iallreduce", "ibcast"])


@pytest.mark.nightly
@pytest.mark.parametrize("mpi", MPIS)
def test_mpi4py(mpi, tmp_path):
    """mpi4py's own tests: nearly every function of MPI, with all its types."""
    tests, env = real_programs.mpi4py(mpi)
    # A file per rank: in one stream the verdicts of two ranks run into each other.
    to_own_file = 'exec "$@" 2>"$0/verdict.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
    argv = ["sh", "-c", to_own_file, str(tmp_path), "/usr/bin/python3", str(tests / "runtests.py"), "--no-builddir"]
    argv += ["-e", "spawn", "-e", "dynproc"]

    def verdict(_: Completed) -> list[str]:
        texts = [(tmp_path / f"verdict.{rank}").read_text() for rank in range(2)]
        assert all(re.search(r"^OK\b", text, re.MULTILINE) for text in texts), texts
        return [re.search(r"^Ran \d+ tests", text, re.MULTILINE)[0] for text in texts]

    names = ["ibcast", "iallgather", "ialltoallw", "iallreduce", "iscan"]
    assert_same_numbers(mpi, 2, argv, verdict, names, {"OMPI_MCA_osc": "sm,pt2pt"} | env)
