# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of conformance: programs run natively and offloaded, and what both printed compared."""

import contextlib
import functools
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from conftest import FULL, MPIS  # noqa: F401
from offpath.base.paths import paths
from offpath.base.processes import Completed
from offpath.lab import Lab
from offpath.launch.local import local_mpirun

LIMIT_S = 3600 if FULL else 900  # for a hang, never reached otherwise
# Open MPI's SUM of 8-bit types is wrong with its AVX code, with and without us.
NATIVE = {"OMPI_MCA_op": "^avx"}
EVERYTHING = {"OFFPATH_POLICY": "*:dpu"}

MOVEMENT = (
    "ibcast igather igatherv iscatter iscatterv iallgather iallgatherv ialltoall ialltoallv ialltoallw "
    "ineighbor_allgather ineighbor_allgatherv ineighbor_alltoall ineighbor_alltoallv ineighbor_alltoallw"
).split()
REDUCTIONS = "ireduce iallreduce ireduce_scatter ireduce_scatter_block iscan iexscan".split()
COLLECTIVES = frozenset(["ibarrier", *MOVEMENT, *REDUCTIONS])


@dataclass(frozen=True)
class Place:
    """Where the offloaded side runs: on this machine's one node, or in a lab."""

    ranks: int
    lab: Lab | None = None
    ranks_per_node: int = 1

    def run(self, mpi: str, argv: Sequence[str], env: Mapping[str, str]) -> Completed:
        if self.lab is None:
            return local_mpirun(mpi, self.ranks, argv, offload=True, env=env, timeout=LIMIT_S)
        return self.lab.mpirun(mpi, self.ranks_per_node, argv, offload=True, env=env, timeout=LIMIT_S)


@contextlib.contextmanager
def placed(nodes: int, ranks_per_node: int) -> Iterator[Place]:
    if nodes == 1:
        yield Place(ranks_per_node)
        return
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    with Lab(nodes=nodes, rate="10gbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:
        yield Place(nodes * ranks_per_node, lab, ranks_per_node)


def program(name: str, mpi: str) -> str:
    path = paths().prefix / "tests" / "conformance" / mpi / name
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return str(path)


@functools.cache
def native(mpi: str, ranks: int, argv: tuple[str, ...]) -> str:
    """What the program prints without Offpath; a program that fails so has nothing to tell about Offpath."""
    result = local_mpirun(mpi, ranks, argv, env=NATIVE, timeout=LIMIT_S)
    assert result.returncode == 0, f"natively: {result.stdout[-2000:]}{result.stderr[-2000:]}"
    return result.stdout


def offloaded_counts(ranks: Sequence[Mapping]) -> Counter:
    """How many calls of each collective were offloaded, over all ranks."""
    counts: Counter = Counter()
    for rank in ranks:
        for name, entry in rank["collectives"].items():
            counts[name] += entry["offloaded_count"]
    return counts


def assert_no_failures(got: str, how: str, said: str) -> None:
    """An operation that MPI has returned an error for is no wrong data; `said`: what there is on stderr about it."""
    failures = [line for line in got.splitlines() if " FAILED " in line]
    shown = "\n".join(f"  {line}" for line in failures[:10])
    wrong = sum(line.endswith(" WRONG") for line in got.splitlines())
    count = f"{len(failures)} operations failed, and {wrong} gave wrong data"
    assert not failures, f"{count}; repeat with: {how}\n{shown}\n{said[-2000:]}"


def assert_same_lines(expected: str, got: str, how: str, said: str = "") -> None:
    assert_no_failures(got, how, said)
    expected_lines, got_lines = expected.splitlines(), got.splitlines()
    different = [pair for pair in zip(expected_lines, got_lines, strict=False) if pair[0] != pair[1]]
    shown = "\n".join(f"  natively  {one}\n  offloaded {other}" for one, other in different[:10])
    assert not different, f"{len(different)} lines differ; repeat with: {how}\n{shown}"
    assert len(expected_lines) == len(got_lines), f"{len(got_lines)} lines of {len(expected_lines)}: {how}"


def assert_conforms(place: Place, mpi: str, argv: Sequence[str], env: Mapping[str, str], names: frozenset) -> None:
    """The program prints the same offloaded, and all of `names` were in fact offloaded."""
    expected = native(mpi, place.ranks, tuple(argv))
    result = place.run(mpi, argv, NATIVE | EVERYTHING | env)
    how = f"{mpi}, {place.ranks} ranks, {' '.join(f'{name}={value}' for name, value in env.items())} {' '.join(argv)}"
    assert_same_lines(expected, result.stdout, how, result.stderr)
    assert result.returncode == 0, f"{how}\n{result.stderr[-3000:]}"
    assert len(result.stats) == place.ranks, result.stderr[-3000:]
    assert all(rank["offloaded_count"] > 0 and rank["failed_count"] == 0 for rank in result.stats)
    counts = offloaded_counts(result.stats)
    missing = sorted(name for name in names if counts[name] == 0)
    assert not missing, f"never offloaded: {missing}; {how}"
