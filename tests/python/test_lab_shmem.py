# SPDX-License-Identifier: BSD-3-Clause
"""OpenSHMEM programs between the nodes of a lab: unmodified, offloaded, right; and a target that only computes."""

import random
import subprocess
import uuid

import pytest
from conftest import LIMIT_S, ROOT, requires_root
from guide_support import write_files
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.lab import Lab
from offpath.launch import mpis


def installed() -> bool:
    try:
        return bool(mpis.launcher(mpis.OPENSHMEM)) and paths().shmem_library.exists()
    except UserError:
        return False


pytestmark = [requires_root, pytest.mark.skipif(not installed(), reason="OpenSHMEM is not installed or not built")]


@pytest.fixture(scope="module")
def lab():
    with Lab(nodes=2, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:
        yield lab


def run(lab: Lab, ppn: int, program: str, *arguments: str, offload: bool = True, env: dict | None = None):
    argv = [str(paths().prefix / "tests" / "shmem" / program), *arguments]
    return lab.mpirun(mpis.OPENSHMEM, ppn, argv, offload=offload, env=env, timeout=LIMIT_S)


@pytest.mark.grid(4)
@pytest.mark.parametrize("ppn", (1, 2))
@pytest.mark.parametrize("program", ("moves", "atomics", "order", "computing", "hybrid", "random"))
def test_results_are_right(lab, ppn, program):
    """By the default policy: windows of two nodes are offloaded."""
    seed = [str(random.randrange(1 << 32))] if program == "random" else []
    print("seed", *seed)
    result = run(lab, ppn, program, *seed)
    assert result.returncode == 0 and "WRONG" not in result.stdout, result.stdout + result.stderr
    pes = [line for line in result.stats if line["mpi"] == mpis.OPENSHMEM]
    assert len(pes) == 2 * ppn
    assert all(pe["enabled"] and pe["native_count"] == 0 and pe["failed_count"] == 0 for pe in pes), pes
    assert sum(pe["offloaded_count"] for pe in pes) > 0


def pes_of(result) -> list[dict]:
    assert result.returncode == 0 and "WRONG" not in result.stdout, result.stdout + result.stderr
    return [line for line in result.stats if line["mpi"] == mpis.OPENSHMEM]


@pytest.mark.parametrize("ppn", (1, 2))
def test_collectives_are_right(lab, ppn):
    """On sets within a node and across both; blocking ones as if the user had named them."""
    seed = str(random.randrange(1 << 32))
    print("seed", seed)
    forced = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_MPI_BLOCKING": "all"}
    offloaded = run(lab, ppn, "collectives", seed, "30", env=forced)
    counts = [pe["collectives"] for pe in pes_of(offloaded)]
    assert len(counts) == 2 * ppn
    for kind in ("broadcast", "collect", "fcollect", "alltoall", "reduce"):
        assert sum(count[kind]["offloaded_count"] for count in counts if kind in count) > 0, counts
        assert sum(count[kind]["native_count"] for count in counts if kind in count) == 0, counts
    assert run(lab, ppn, "collectives", seed, "30", offload=False).stdout == offloaded.stdout


def test_collectives_by_the_default_policy(lab):
    """Those that the program waits for in the call are native; short ones that it begins, too."""
    counts = [pe["collectives"] for pe in pes_of(run(lab, 1, "collectives", "3", "10"))]
    assert all("collect" not in count for count in counts), counts
    assert sum(each["native_count"] for count in counts for each in count.values()) > 0, counts


def test_the_program_of_the_guide(lab, tmp_path):
    """Its alltoall is long enough for the default policy, and begun: the service does it."""
    write_files((ROOT / "docs" / "guide-openshmem.md").read_text(), tmp_path)
    compiled = ["oshcc", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", tmp_path / "overlap.c"]
    subprocess.run([*compiled, "-o", tmp_path / "overlap"], check=True)
    for offload in (False, True):
        result = lab.mpirun(mpis.OPENSHMEM, 1, [str(tmp_path / "overlap")], offload=offload, timeout=LIMIT_S)
        assert sorted(result.stdout.split("\n")) == ["", "PE 0: right", "PE 1: right"], result.stdout + result.stderr
    assert [pe["collectives"]["alltoall"]["offloaded_count"] for pe in pes_of(result)] == [1, 1], result.stats


def test_the_same_natively(lab):
    native, offloaded = (run(lab, 1, "order", offload=offload) for offload in (False, True))
    assert native.returncode == 0, native.stderr
    assert native.stdout == offloaded.stdout


def test_a_killed_pe_ends_the_job(lab):
    result = run(lab, 1, "ends", "killed")
    assert result.returncode != 0
    assert "put: ok" in result.stdout
