# SPDX-License-Identifier: BSD-3-Clause
"""Programs that Slurm starts: Offpath around srun, inside it, in a batch script; over the PMI that each MPI knows."""

import subprocess

import pytest
import slurm_support
from conftest import PROGRAMS, ROOT
from offpath import stats
from offpath.paths import paths

OFFPATH = [str(ROOT / "offpath"), "run", "--share", "--policy", "*:dpu"]
# Debian's Open MPI speaks PMIx only, its MPICH the protocol of pmi2 only. Under the other one each is without Offpath
# what it is with it: Open MPI ends in MPI_Init, MPICH runs as two jobs of one process.
PMI = {"openmpi": "pmix", "mpich": "pmi2"}


@pytest.fixture(scope="module")
def slurm():
    with slurm_support.running() as slurm:
        yield slurm


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Path of the program that checks its results, by MPI."""
    folder = tmp_path_factory.mktemp("checked")
    for mpi in PMI:
        if not (paths().lib / f"liboffpath_mpi_{mpi}.so").exists():
            pytest.skip("not built")
        command = [f"mpicc.{mpi}", "-w", "-O1", str(PROGRAMS / "checked.c"), "-o", str(folder / mpi)]
        subprocess.run(command, check=True)
    return {mpi: str(folder / mpi) for mpi in PMI}


def srun(mpi, *command):
    return ["srun", "--quiet", f"--mpi={PMI[mpi]}", "-n", "2", *command]


def assert_offloaded(result, statistics, jobs=1):
    """Right results, and both ranks of each job had collectives and windows offloaded; one line for each job."""
    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(result.stdout.splitlines()) == sorted(["0 of 2: right", "1 of 2: right"] * jobs), result.stderr
    assert result.stderr.count("offpath: 2 ranks on 1 node") == result.stderr.count("offpath:") == jobs, result.stderr
    ranks = stats.read(statistics)
    assert len(ranks) == 2 * jobs
    assert all(rank["offloaded_count"] == 6 and rank["windows"]["operations_count"] > 0 for rank in ranks), ranks


def test_around_srun(slurm, checked, tmp_path):
    program = srun("openmpi", checked["openmpi"])
    result = slurm.run([*OFFPATH, "--stats", str(tmp_path / "s"), "--", *program])
    assert_offloaded(result, tmp_path / "s")


@pytest.mark.nightly
@pytest.mark.parametrize("mpi", PMI)
def test_around_srun_with_either(slurm, checked, mpi, tmp_path):
    around = [*OFFPATH, "--stats", str(tmp_path / "around"), "--", *srun(mpi, checked[mpi])]
    assert_offloaded(slurm.run(around), tmp_path / "around")


@pytest.mark.nightly
def test_a_batch_script(slurm, checked, tmp_path):
    """srun and each MPI's own launcher, which knows that it is in a job of Slurm."""
    lines = [
        srun("openmpi", checked["openmpi"]),
        srun("mpich", checked["mpich"]),
        ["mpirun.openmpi", "--oversubscribe", "-np", "2", checked["openmpi"]],
        ["mpirun.mpich", "-np", "2", checked["mpich"]],
    ]
    around = " ".join([*OFFPATH[:-1], "'*:dpu'", "--stats", str(tmp_path / "s"), "--"])
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh -e\n" + "".join(f"{around} {' '.join(line)}\n" for line in lines))
    streams = ["--output", str(tmp_path / "out"), "--error", str(tmp_path / "err")]
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    result = slurm.run(["sbatch", "--quiet", "--wait", "-n", "2", *streams, str(script)], as_root)
    result.stdout, result.stderr = (tmp_path / "out").read_text(), (tmp_path / "err").read_text()
    assert_offloaded(result, tmp_path / "s", jobs=len(lines))


@pytest.mark.nightly
@pytest.mark.parametrize("mpi, pmi", (("openmpi", "pmi2"), ("mpich", "pmix")))
def test_the_pmi_that_an_mpi_does_not_know(slurm, checked, mpi, pmi):
    """Offpath changes nothing about what comes of it."""
    results = [
        slurm.run([*around, "srun", "--quiet", f"--mpi={pmi}", "-n", "2", checked[mpi]])
        for around in ([], [*OFFPATH, "--quiet", "--"])
    ]
    assert len({(result.returncode, result.stdout) for result in results}) == 1, results
