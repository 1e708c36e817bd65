# SPDX-License-Identifier: BSD-3-Clause
"""A program gives the same results under Offpath as without: tests/conformance, line by line.

OFFPATH_TEST_FULL=1 walks the whole matrix and adds calls of over 2 GiB. OFFPATH_TEST_SEED=N repeats a random program.
"""

import re
from pathlib import Path

import pytest
from conformance_support import (
    COLLECTIVES,
    EVERYTHING,
    FULL,
    MPIS,
    NATIVE,
    assert_conforms,
    offloaded_counts,
    placed,
    program,
)
from conftest import PROGRAM_SEED

# Primes, see matrix.c; the larger the fewer cases. These leave every irregular collective a case with data (with empty
# blocks it is not offloaded): 211 leaves the persistent neighbor_alltoallv and w none.
EVERY = {"nonblocking": 1 if FULL else 101, "persistent": 3 if FULL else 227, "blocking": 3 if FULL else 227}
STEPS = 5000 if FULL else 400
# The blocking forms that can be offloaded, by the name of the operation behind them.
BLOCKING = frozenset(["ibcast", "iallgather", "iallgatherv", "ialltoall", "ialltoallv", "iallreduce"])
# MPICH's own persistent forms of these cannot be started twice, so they are not run (skips.c).
NOT_PERSISTENT = {"openmpi": frozenset(), "mpich": frozenset(["igather", "iscatter", "iallgather"])}
BINDINGS = ("mpifh", "mpi", "f08")
HUGE_BYTES = 10 << 30

# Nodes, ranks of each.
PLACES = {"one_node": (1, 4), "2x2": (2, 2)} | ({"3x1": (3, 1), "4x1": (4, 1)} if FULL else {})


@pytest.fixture(scope="module", params=PLACES)
def place(request):
    with placed(*PLACES[request.param]) as where:
        yield where


def only(place, *nodes):
    if (1 if place.lab is None else place.lab.plan.node_count) not in nodes and not FULL:
        pytest.skip("runs in another place, and in this one with make nightly")


@pytest.mark.parametrize("mpi", MPIS)
def test_nonblocking(place, mpi):
    argv = [program("conformance", mpi), "--every", str(EVERY["nonblocking"])]
    assert_conforms(place, mpi, argv, {}, COLLECTIVES)


@pytest.mark.parametrize("mpi", MPIS)
def test_persistent(place, mpi):
    only(place, 1, 2)
    argv = [program("conformance", mpi), "--form", "persistent", "--every", str(EVERY["persistent"])]
    assert_conforms(place, mpi, argv, {}, COLLECTIVES - NOT_PERSISTENT[mpi])


@pytest.mark.parametrize("mpi", MPIS)
def test_blocking(place, mpi):
    only(place, 2)
    argv = [program("conformance", mpi), "--form", "blocking", "--every", str(EVERY["blocking"])]
    assert_conforms(place, mpi, argv, {"OFFPATH_MPI_BLOCKING": "all"}, BLOCKING)


@pytest.mark.parametrize("form", ("nonblocking", "persistent"))
@pytest.mark.parametrize("mpi", MPIS)
def test_random_programs(place, mpi, form):
    print(f"OFFPATH_TEST_SEED={PROGRAM_SEED}")
    argv = [program("conformance", mpi), "--random", "--form", form, "--steps", str(STEPS), "--seed", str(PROGRAM_SEED)]
    assert_conforms(place, mpi, argv, {}, frozenset())


@pytest.mark.parametrize("mpi", MPIS)
def test_several_threads(place, mpi):
    only(place, 1, 2)
    argv = [program("conformance", mpi), "--threads", "3", "--seed", str(PROGRAM_SEED)]
    assert_conforms(place, mpi, argv, {}, frozenset())


@pytest.mark.parametrize("mpi", MPIS)
def test_several_workers(place, mpi):
    """More of them than ranks of a node, or fewer: then one serves two."""
    only(place, 1, 2)
    argv = [program("conformance", mpi), "--random", "--steps", str(STEPS), "--seed", str(PROGRAM_SEED)]
    assert_conforms(place, mpi, argv, {"OFFPATH_SERVICE_WORKERS": "3"}, frozenset())


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("mpi", MPIS)
def test_fortran(place, mpi, binding):
    only(place, 2)
    expected = COLLECTIVES - {f"ineighbor_{name}" for name in ("allgatherv", "alltoallv", "alltoallw")}
    assert_conforms(place, mpi, [program(f"fortran_{binding}", mpi)], {}, frozenset(expected))


def available_bytes() -> int:
    return 1024 * int(re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text()).group(1))


@pytest.mark.skipif(not FULL, reason="OFFPATH_TEST_FULL=1 runs it")
@pytest.mark.skipif(available_bytes() < HUGE_BYTES, reason="needs 10 GiB of free memory")
@pytest.mark.parametrize("nodes", (1, 2))
@pytest.mark.parametrize("mpi", MPIS)
def test_over_2_gib(mpi, nodes):
    """Compared with what the program itself expects: twice as much memory is not at hand."""
    argv = [program("conformance", mpi), "--huge"]
    env = NATIVE | EVERYTHING
    with placed(nodes, 2 // nodes) as where:
        result = where.run(mpi, argv, env)
    assert result.returncode == 0, result.stdout + result.stderr
    counts = offloaded_counts(result.stats)
    assert all(counts[name] > 0 for name in ("ibcast", "ialltoall", "iallreduce")), counts
