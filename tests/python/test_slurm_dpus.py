# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of Slurm whose service runs on DPUs that are machines: nothing of Slurm's holds there."""

import re
import subprocess

import pytest
import slurm_support
from conftest import PROGRAMS, require
from offpath.base.paths import paths
from offpath.launch import stats
from scrape_support import scrape
from slurm_support import until
from test_slurm import OFFPATH, srun, text


@pytest.fixture(scope="module")
def cluster():
    with slurm_support.running(dpus=1) as cluster:
        cluster.environment |= {"OFFPATH_DPUS": cluster.lab.dpus()}
        yield cluster


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    require(paths().lib / "liboffpath_mpi_mpich.so")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("checked", "signalled"):
        command = ["mpicc.mpich", "-w", "-O1", str(PROGRAMS / f"{name}.c"), "-o", str(folder / f"{name}-mpich")]
        subprocess.run(command, check=True)
    return folder


def test_the_service_has_its_dpus_cores_whatever_the_step_has(cluster, built, tmp_path):
    """A command that starts it inherits the step's control groups, as one that stays on this machine."""
    step = srun("mpich", str(built / "checked-mpich"))
    result = cluster.run([*OFFPATH, "--stats", "s", "--", *step], tmp_path)
    assert result.returncode == 0 and "12 collectives, 12 offloaded" in result.stderr, result.stderr
    ranks = stats.read(tmp_path / "s")
    assert len(ranks) == 2 and all(rank["offloaded_count"] == 6 for rank in ranks), ranks
    cluster.assert_clean()


def test_metrics_of_the_first_ranks_node(cluster, built, tmp_path):
    """Behind srun, where its ranks are Slurm's; they are of that node's agent."""
    output = tmp_path / "out"
    output.touch()
    # The room for messages would count, too.
    words = [*OFFPATH, "--policy", "*:dpu,send:host", "--metrics", "0", "--", str(built / "signalled-mpich")]
    step = srun("mpich", *words)
    job = cluster.batch(text(step), tmp_path, "-N2", "-n2", "--output=out", wait=False)
    until(lambda: output.read_text().count("ready") == 2, output.read_text)
    (url,) = re.findall(r"metrics at (\S+)\n", output.read_text())
    _, samples = scrape(cluster.lab, "node1", url)
    (agent,) = cluster.services(["node1"])
    done, worker = samples["operations_done_total"], samples["worker_cpu_seconds_total"]
    assert done.value == 1 and done.labels["rank"] == "0" and done.labels["job_id"] == job
    assert worker.value > 0 and worker.labels["process"] == str(agent) and worker.labels["node"] == "node1"
    assert cluster.run(["scancel", "--signal=USR1", job], tmp_path).returncode == 0
    cluster.assert_clean()
    assert output.read_text().count("saved") == 2
