# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of Slurm that are ended before their time, by Slurm or by hand: what stays on nodes and DPUs afterwards."""

import os
import signal
from pathlib import Path

import pytest
import slurm_support
from offpath.lab import inventory
from slurm_support import until
from test_slurm import SHARE, files, srun, text
from test_slurm_dpus import built  # noqa: F401

NIGHTLY = pytest.mark.nightly


@pytest.fixture(scope="module", params=["cores", "dpus"])
def cluster(request):
    with slurm_support.running(dpus=1 if request.param == "dpus" else 0) as cluster:
        cluster.on_dpus = request.param == "dpus"
        if cluster.on_dpus:
            cluster.environment |= {"OFFPATH_DPUS": cluster.lab.dpus()}
        yield cluster


def start(cluster, built, folder, *options, forever=True):  # noqa: F811
    """A job whose ranks have communicated and wait, with `offpath run` on its first node; its number."""
    (folder / "out").touch()
    program = [str(built / "signalled-mpich"), *(["forever"] if forever else [])]
    job = cluster.batch(text([*SHARE, "--", *srun("mpich", *program)]), folder, "-N2", "-n2", "--output=out", *options,
                        wait=False)  # fmt: skip
    until(lambda: (folder / "out").read_text().count("ready") == 2, (folder / "out").read_text)
    count = 4 if cluster.on_dpus else 2
    assert len(cluster.services()) == len(cluster.sockets()) == count
    assert len(list(folder.glob(".offpath-*"))) == 1
    return job


def everybody(cluster) -> set[int]:
    return set(inventory.processes(cluster.lab.name))


def shared_memory(cluster) -> set[str]:
    """What is left of ours by name; hosts have that of this machine, where others have theirs, DPUs their own."""
    found = {name for name in os.listdir("/dev/shm") if "offpath" in name}
    for dpu in cluster.lab.plan.dpus if cluster.on_dpus else ():
        init = (cluster.lab.plan.state_dir / dpu.place / "init").read_text().strip()
        found |= {f"{dpu.place}: {name}" for name in os.listdir(f"/proc/{init}/root/dev/shm")}
    return found


def words_of(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().split("\0")
    except OSError:
        return []


def kill(cluster, is_meant) -> None:
    found = [process for process in everybody(cluster) if is_meant(words_of(process))]
    assert found
    for process in found:
        os.kill(process, signal.SIGKILL)


def is_run(words):
    return words[1:4] == ["-m", "offpath", "run"]


def is_srun(words):
    return words[:2] == ["srun", "--quiet"]


class Ended:
    """By whom or what a job is ended."""

    @staticmethod
    def by_scancel(cluster, job):
        assert cluster.run(["scancel", job], Path("/")).returncode == 0

    @staticmethod
    def by_scancel_of_its_step(cluster, job):
        assert cluster.run(["scancel", f"{job}.0"], Path("/")).returncode == 0

    @staticmethod
    def by_killing_the_run(cluster, job):
        kill(cluster, is_run)

    @staticmethod
    def by_killing_srun(cluster, job):
        kill(cluster, is_srun)


@pytest.mark.parametrize(
    "end",
    [
        Ended.by_scancel, Ended.by_killing_the_run, pytest.param(Ended.by_scancel_of_its_step, marks=NIGHTLY),
        pytest.param(Ended.by_killing_srun, marks=NIGHTLY),
    ],
    ids=lambda end: end.__name__,
)  # fmt: skip
def test_nothing_stays_after_the_next_use(cluster, built, end, tmp_path):  # noqa: F811
    before = everybody(cluster)
    end(cluster, start(cluster, built, tmp_path))
    assert_nothing_stays(cluster, built, tmp_path, before)


def assert_nothing_stays(cluster, built, folder, before):  # noqa: F811
    """Processes are gone by themselves, on DPUs, too; files are by what is started next on these nodes, elsewhere."""
    cluster.await_end()
    until(lambda: everybody(cluster) <= before, lambda: str([words_of(pid) for pid in everybody(cluster) - before]))
    (folder / "next").mkdir()
    result = cluster.run([*SHARE, "--", *srun("mpich", str(built / "checked-mpich"))], folder / "next")
    assert result.returncode == 0 and "12 offloaded" in result.stderr, result.stderr
    cluster.assert_clean()
    assert files(folder / "next") == []
    until(lambda: files(folder) == ["job.sh", "next", "out"], lambda: str(files(folder)))
    until(lambda: everybody(cluster) <= before, lambda: str([words_of(pid) for pid in everybody(cluster) - before]))
    assert not shared_memory(cluster)


@NIGHTLY
def test_nothing_stays_of_a_job_that_runs_out_of_time(cluster, built, tmp_path):  # noqa: F811
    before = everybody(cluster)
    start(cluster, built, tmp_path, "--time=0:01")  # Slurm's shortest is a minute
    assert_nothing_stays(cluster, built, tmp_path, before)
    assert "DUE TO TIME LIMIT" in (tmp_path / "out").read_text()


@pytest.mark.parametrize("place", ["node1", pytest.param("node1-dpu", marks=NIGHTLY)])
def test_nothing_stays_of_a_service_that_was_killed(cluster, built, place, tmp_path):  # noqa: F811
    """Or of its agent. The job goes on natively and ends by itself."""
    if place.endswith("dpu") and not cluster.on_dpus:
        pytest.skip("it has no DPUs")
    before = everybody(cluster)
    job = start(cluster, built, tmp_path, forever=False)
    (service,) = cluster.services([place])
    os.kill(service, signal.SIGKILL)
    until(lambda: service not in cluster.services([place]), lambda: "it cannot be killed")
    assert cluster.run(["scancel", "--signal=USR1", job], tmp_path).returncode == 0
    cluster.await_end()
    said = (tmp_path / "out").read_text()
    assert said.count("saved") == 2, said
    assert_nothing_stays(cluster, built, tmp_path, before)
