# SPDX-License-Identifier: BSD-3-Clause
"""OpenSHMEM programs between the nodes of a lab: unmodified, offloaded, right; and a target that only computes."""

import random
import uuid

import pytest
from conftest import LIMIT_S, requires_root
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


def test_the_same_natively(lab):
    native, offloaded = (run(lab, 1, "order", offload=offload) for offload in (False, True))
    assert native.returncode == 0, native.stderr
    assert native.stdout == offloaded.stdout


def test_a_killed_pe_ends_the_job(lab):
    result = run(lab, 1, "ends", "killed")
    assert result.returncode != 0
    assert "put: ok" in result.stdout
