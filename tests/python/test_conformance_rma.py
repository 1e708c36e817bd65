# SPDX-License-Identifier: BSD-3-Clause
"""One-sided operations: a random program against its own model, natively and offloaded; both print the same lines.

The lines do not depend on the MPI, and natively MPICH gets all of them right. Open MPI 4.1 does not: osc/pt2pt hangs
in locks of single targets, and both components get derived types wrong. It natively runs what it gets right; offloaded
runs are compared with MPICH's lines whichever MPI they use.
"""

import functools
import os
import subprocess

import pytest
from conformance_support import EVERYTHING, FULL, LIMIT_S, MPIS, NATIVE, Place, assert_same_lines, placed, program
from conftest import succeeded
from offpath.launch.local import local_mpirun

EPISODES = 2000 if FULL else 60
SEED = int(os.environ.get("OFFPATH_TEST_SEED", int.from_bytes(os.urandom(4), "little") if FULL else 20261121))
RIGHT_IN_OPENMPI = (
    ("--plain", "--epochs", "fence,pscw,lock_all"),
    ("--plain", "--windows", "allocate"),
)
SETTINGS = NATIVE | {"OMPI_MCA_osc": "sm,pt2pt"}
# Nodes, ranks of each.
PLACES = {"1x2": (1, 2), "1x4": (1, 4), "2x1": (2, 1), "2x2": (2, 2)} | ({"1x8": (1, 8), "4x1": (4, 1)} if FULL else {})


def arguments(*more: str) -> list[str]:
    print(f"OFFPATH_TEST_SEED={SEED}")
    return ["--seed", str(SEED), "--episodes", str(EPISODES), *more]


@functools.cache
def expected(ranks: int, *more: str) -> str:
    result = local_mpirun("mpich", ranks, [program("conformance_rma", "mpich"), *arguments(*more)], timeout=LIMIT_S)
    assert result.returncode == 0, f"natively: {result.stdout[-2000:]}{result.stderr[-2000:]}"
    assert "WRONG" not in result.stdout
    return result.stdout


@pytest.mark.grid(1)
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_natively_with_mpich(ranks):
    lines = expected(ranks).splitlines()
    assert len(lines) == EPISODES + 4
    assert sum("contention" in line for line in lines) == 4


@pytest.mark.grid(2)
@pytest.mark.parametrize("limits", RIGHT_IN_OPENMPI, ids=lambda limits: "-".join(limits[2:]))
@pytest.mark.parametrize("ranks", [2, 3])
def test_natively_with_openmpi(ranks, limits):
    argv = [program("conformance_rma", "openmpi"), *arguments(*limits)]
    result = succeeded(local_mpirun("openmpi", ranks, argv, env=SETTINGS, timeout=LIMIT_S))
    assert "WRONG" not in result.stdout


def test_a_wrong_library_is_found_out(tmp_path):
    """Accumulates that overwrite."""
    source = """
#include <mpi.h>
int MPI_Accumulate(const void* o, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Op p,
                   MPI_Win w) {
  return PMPI_Put(o, n, t, r, d, m, u, w);
}
"""
    library = tmp_path / "broken.so"
    compiler = ["mpicc.mpich", "-shared", "-fPIC", "-xc", "-", "-o", library]
    subprocess.run(compiler, input=source, text=True, check=True)
    argv = ["env", f"LD_PRELOAD={library}", program("conformance_rma", "mpich"), *arguments()]
    result = local_mpirun("mpich", 2, argv, timeout=LIMIT_S)
    assert result.returncode == 1 and "WRONG" in result.stdout and f"--seed {SEED}" in result.stderr


@pytest.fixture(scope="module", params=PLACES)
def place(request):
    with placed(*PLACES[request.param]) as where:
        yield where


@pytest.mark.parametrize("mpi", MPIS)
def test_offloaded(place, mpi):
    argv = [program("conformance_rma", mpi), *arguments()]
    result = place.run(mpi, argv, SETTINGS | EVERYTHING)
    how = f"{mpi}, {place.ranks} ranks, {' '.join(argv)}"
    assert_same_lines(expected(place.ranks), result.stdout, how)
    assert result.returncode == 0, f"{how}\n{result.stderr[-3000:]}"
    assert len(result.stats) == place.ranks, result.stderr[-3000:]
    assert all(rank["windows"]["operations_count"] > 0 and rank["failed_count"] == 0 for rank in result.stats)


@pytest.mark.parametrize("mpi", MPIS)
def test_several_workers(mpi):
    result = Place(3).run(mpi, [program("conformance_rma", mpi), *arguments()],
                          SETTINGS | EVERYTHING | {"OFFPATH_SERVICE_WORKERS": "2"})  # fmt: skip
    assert_same_lines(expected(3), result.stdout, f"{mpi}, 3 ranks, 2 workers")
    assert result.returncode == 0 and len(result.stats) == 3, result.stderr[-3000:]
    assert all(rank["windows"]["operations_count"] > 0 and rank["failed_count"] == 0 for rank in result.stats)


@pytest.mark.parametrize("mpi", MPIS)
def test_each_operation_its_way(place, mpi):
    """On two nodes: by the policy's own row puts and gets may go natively; and where every second one does."""
    if place.lab is None or place.ranks > 4:
        pytest.skip("two nodes suffice")
    alternate = {"OFFPATH_POLICY": "window:dpu", "OFFPATH_MPI_WINDOWS": "alternate"}
    env = SETTINGS | (alternate if place.ranks > 2 else {})
    # A window that goes natively as a whole does what the library does. Between nodes osc/pt2pt gets wrong what is
    # atomic, with any seed, and writes beyond its memory in accumulates of derived types.
    more = ["--plain", "--copies"] if place.ranks > 2 and mpi == "openmpi" else []
    result = place.run(mpi, [program("conformance_rma", mpi), *arguments(*more)], env)
    how = f"{mpi}, {place.ranks} ranks, returned {result.returncode}: {result.stderr[-3000:]}"
    assert_same_lines(expected(place.ranks, *more), result.stdout, how)
    assert result.returncode == 0, how
    assert all(rank["windows"]["mixed_count"] > 0 for rank in result.stats), result.stats
    assert place.ranks == 2 or all(rank["windows"]["natively_count"] > 0 for rank in result.stats), result.stats
