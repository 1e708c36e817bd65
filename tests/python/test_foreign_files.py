# SPDX-License-Identifier: BSD-3-Clause
"""MPI's files by programs that nobody here wrote: what is right natively is right offloaded.

docs/compatibility.md says what is run and how many there are.
"""

import uuid

import foreign_files as files
import foreign_support as foreign
import pytest
from conftest import requires_root
from offpath.lab import Lab
from offpath.launch.local import local_mpirun

pytestmark = pytest.mark.nightly


def assert_same_verdicts(way, programs, folder, run_offloaded):
    """`run_offloaded`(ranks, argv). What is right natively is right offloaded; Open MPI's romio321 crashes in many.

    Each program that has transfers for the service must offload some.
    """
    mpi, _ = files.WAYS[way]
    different, offloaded, expected = {}, {}, set()
    for program in programs:
        native = local_mpirun(
            mpi, program.ranks, program.within(folder / "native"), env=files.environment(way), timeout=foreign.LIMIT_S
        )
        result = run_offloaded(program.ranks, program.within(folder / "offloaded"))
        if result.returncode == 0 and program.offloads():
            expected.add(program.name)
        if files.offloaded_transfers(result.stats) > 0:
            offloaded[program.name] = files.offloaded_transfers(result.stats)
        if native.returncode == 0 and files.verdict(native) != files.verdict(result):
            different[program.name] = (
                f"natively {files.verdict(native)}, offloaded {files.verdict(result)}\n"
                f"{result.stdout[-1500:]}{result.stderr[-1500:]}"
            )
    assert not different, "\n".join(f"{name}: {what}" for name, what in different.items())
    assert set(offloaded) == expected, offloaded


@pytest.mark.parametrize("policy", files.POLICIES)
@pytest.mark.parametrize("way", files.WAYS)
@pytest.mark.parametrize("suite", files.SUITES)
def test_files(suite, way, policy, tmp_path):
    mpi, _ = files.WAYS[way]
    env = files.environment(way) | files.POLICIES[policy]

    def run(ranks, argv):
        return local_mpirun(mpi, ranks, argv, offload=True, env=env, timeout=foreign.LIMIT_S)

    assert_same_verdicts(way, files.SUITES[suite](mpi), tmp_path, run)


@pytest.mark.parametrize("policy", files.POLICIES)
@pytest.mark.parametrize("way", files.WAYS)
def test_mpi4py(way, policy, tmp_path):
    """Each call with small arrays of all types, and views of them."""
    mpi, _ = files.WAYS[way]
    env = files.environment(way) | foreign.mpi4py_environment(mpi)
    verdicts = []
    for offload in (False, True):
        folder = tmp_path / str(offload)
        folder.mkdir()
        argv = foreign.mpi4py_tests_of_files(mpi, folder)
        variables = env | (files.POLICIES[policy] if offload else {})
        result = local_mpirun(mpi, 2, argv, offload=offload, env=variables, timeout=foreign.LIMIT_S)
        verdicts.append(foreign.mpi4py_verdict(folder))
    assert verdicts[0] == verdicts[1], result.stderr[-2000:]
    assert files.offloaded_transfers(result.stats) > 0


@requires_root
@pytest.mark.parametrize("way", files.WAYS)
@pytest.mark.parametrize("suite", ("mpich", "romio"))
def test_files_on_two_nodes(suite, way, tmp_path):
    mpi, _ = files.WAYS[way]
    env = files.environment(way) | files.POLICIES["files"]
    with Lab(nodes=2, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:

        def run(ranks, argv):
            ppn = (ranks + 1) // 2
            return lab.mpirun(mpi, ppn, argv, offload=True, env=env, timeout=foreign.LIMIT_S, np=ranks)

        assert_same_verdicts(way, files.SUITES[suite](mpi), tmp_path, run)
