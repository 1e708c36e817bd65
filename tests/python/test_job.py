# SPDX-License-Identifier: BSD-3-Clause
"""Which job a command starts: what earlier runs have learned is of that one."""

import sys
from pathlib import Path

from offpath.launch.job import job_of


def test_a_job_is_known_by_its_program_and_ranks(tmp_path, monkeypatch):
    for mpi in ("openmpi", "mpich"):
        job = job_of([f"mpirun.{mpi}", "-np", "2", sys.executable, "-u", "x.py", "2"])
        assert job.launch == f"mpirun.{mpi} -n 2"
        assert job.program == f"{Path(sys.executable).name} x.py"
    here = job_of(["./solver", "input"])
    assert (here.launch, here.program) == ("", "solver")
    # Another build elsewhere, and other hosts, are the same job; another cluster is not.
    assert job_of([str(tmp_path / "solver")]) == here
    # What an option is given may be the name of a program, too.
    for options in (
        ["mpirun.mpich", "-genv", "PINNED", "true", "-n", "2"],
        ["mpirun.openmpi", "--map-by", "sort", "-H", "test", "-np", "2"],
        ["mpirun.openmpi", "--mca", "btl", "tee", "--oversubscribe", "-np", "2"],
        ["srun", "-w", "test", "-n", "2"],
    ):
        job = job_of([*options, "sh", "x"])
        assert (job.program, job.launch) == ("sh x", f"{options[0]} -n 2")
    hosts = [job_of(["srun", "-n4", "-w", host, "sh", "x"]).launch for host in ("a", "b")]
    assert hosts == ["srun -n 4", "srun -n 4"]
    assert job_of(["srun", "--ntasks=4", "sh", "x"]).launch == "srun -n 4"
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert job_of(["srun", "sh", "x"]).launch == "srun -n 8"
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "east")
    assert job_of(["./solver"]).machine == f"{here.machine}, east"
