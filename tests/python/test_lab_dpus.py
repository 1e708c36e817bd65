# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose service runs on DPUs that are machines: the steps of guide-dpu.md, and what happens when one lacks."""

import contextlib
import json
import os
import platform
import re
import shlex
import subprocess
import time
import uuid

import pytest
from conformance_support import Place, assert_conforms, program
from conftest import LIMIT_S, PROGRAMS, ROOT, captured, eventually, offpath, requires_root, succeeded
from offpath.base.files import new_secret
from offpath.base.paths import paths
from offpath.dpu import service
from offpath.lab import Lab, launchers
from scrape_support import scrape

GUIDE = (ROOT / "docs" / "guide-dpu.md").read_text()
DPUFILE = re.search(r"```\n(.*?)```", GUIDE, re.DOTALL)[1].replace("x86_64", platform.machine())
pytestmark = [
    requires_root,
    pytest.mark.skipif(not (paths().lib / "liboffpath_mpi_openmpi.so").exists(), reason="not built for Open MPI"),
]


def lines(start: str) -> list[str]:
    return re.findall(rf"^    ({re.escape(start)} .*)$", GUIDE, re.MULTILINE)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The folder that the guide's reader is in: program, list, hosts and key."""
    folder = tmp_path_factory.mktemp("work")
    subprocess.run(["mpicc.openmpi", PROGRAMS / "overlap.c", "-o", folder / "my_mpi_program"], check=True)
    (folder / "dpus.txt").write_text(DPUFILE)
    (folder / "hosts").write_text("node1\nnode2\n")
    new_secret(folder / "KEY")
    return folder


@contextlib.contextmanager
def with_starters(work, offpathd: list[str]):
    """Two nodes whose DPUs run the starter as the guide says."""
    (command,) = lines("offpathd")
    words = [*offpathd, *shlex.split(command)[1:]]
    with Lab(nodes=2, name=f"t{uuid.uuid4().hex[:6]}", rate="1gbit", dpus=1, link_latency="20us") as lab:
        for dpu in lab.plan.dpus:
            log = work / f"{dpu.place}.log"
            with open(log, "wb") as output:
                process = subprocess.Popen(lab.inside(dpu.place, words), cwd=work, stdout=output, stderr=output)
            service.await_listening(process, f"{dpu.place}:7001", log)
        yield lab


@pytest.fixture(scope="module")
def cluster(work):
    with with_starters(work, [str(paths().service)]) as lab:
        yield lab


def at_head(lab, work, command: str, **variables: str) -> subprocess.CompletedProcess:
    env = os.environ | launchers.environment(lab.plan) | {"OFFPATH_DEVICE_KEY_FILE": str(work / "KEY")} | variables
    words = [str(ROOT / "offpath") if word == "offpath" else word for word in shlex.split(command)]
    words = ["mpirun.openmpi" if word == "mpirun" else word for word in words]
    return captured(lab.inside("head", words), cwd=work, env=env)


def test_the_three_steps(cluster, work):
    for command in lines("offpath"):
        result = at_head(cluster, work, command)
        assert result.returncode == 0, (command, result.stdout, result.stderr)
        if "check" in command:
            assert len(result.stdout.splitlines()) == 2 and result.stdout.count(": up, Offpath ") == 2, result.stdout
            clocks = [float(line.split("clock ")[1].split()[0]) for line in result.stdout.splitlines()]
            assert all(90000 < clock < 90120 for clock in clocks), clocks  # those of the lab's DPUs
        if "run" in command:
            assert re.search(r"2 nodes .*: (\d+) collectives, \1 offloaded .* 0 native", result.stderr), result.stderr


@pytest.mark.parametrize(
    "change, said",
    [
        (("node2   node2-dpu  port=7001", "node2   node2-dpu  port=7009"), "refused"),
        (("node2   node2-dpu", "head   node2-dpu"), "node2 is not in the list of DPUs"),
        (("node2   node2-dpu  port=7001", "node2   node2-dpu  ssh cores=0"), "cannot be reached"),
    ],
)
def test_without_its_dpu_a_job_is_native_and_says_why(cluster, work, change, said):
    (work / "changed.txt").write_text(DPUFILE.replace(*change).replace("ssh cores=0 arch", "ssh arch"))
    run = "offpath run --dpus changed.txt -- mpirun -hostfile hosts ./my_mpi_program"
    result = succeeded(at_head(cluster, work, run))
    assert "0 offloaded" in result.stderr and said in result.stderr, result.stderr


def test_a_wrong_key_is_a_reason(cluster, work):
    if not (work / "other").exists():
        new_secret(work / "other")
    run = "offpath run --dpus dpus.txt -- mpirun -hostfile hosts ./my_mpi_program"
    result = at_head(cluster, work, run, OFFPATH_DEVICE_KEY_FILE=str(work / "other"))
    assert result.returncode == 0 and "0 offloaded" in result.stderr, result.stderr
    assert "does not know the key" in result.stderr
    required = at_head(
        cluster, work, run.replace("run", "run --dpus-required", 1), OFFPATH_DEVICE_KEY_FILE=str(work / "other")
    )
    assert required.returncode == 1 and "dpus.txt:2: DPU node1-dpu:7001: " in required.stderr, required.stderr


def test_another_release_is_a_reason(cluster, work):
    other = work / "other-release"
    other.write_text("""#!/bin/sh\necho '{"address": "00", "version": "0.0", "machine": "riscv64", "cores": 1}'\n""")
    other.chmod(0o755)
    run = "offpath run -- mpirun -hostfile hosts ./my_mpi_program"
    result = at_head(cluster, work, run, OFFPATH_DPUS=f"*=exec:{other}")
    assert result.returncode == 0 and "Offpath 0.0 is installed on the DPU" in result.stderr, result.stderr


def test_one_spare_node_serves_two_hosts(cluster, work):
    for text in ("* node1-dpu\n", "* node1-dpu\n* node2-dpu\n"):  # then each host has two
        (work / "spare.txt").write_text(text)
        result = at_head(cluster, work, "offpath run --dpus spare.txt -- mpirun -hostfile hosts ./my_mpi_program")
        assert result.returncode == 0 and " 0 native" in result.stderr, result.stderr


def test_devices_and_the_way_there_are_the_nodes_own(cluster, work):
    """Of the same list: what `#pragma omp target` sees on a node, and what --here looks at."""
    variables = {"OFFPATH_DEVICE_KEY_FILE": str(work / "KEY")}
    (work / "addresses.txt").write_text("10.99.0.1 node1-dpu\n10.99.0.2 10.99.0.102\n")
    for command in (["dpus", "list", "addresses.txt", "--here"], ["dpus", "check", "addresses.txt", "--here"]):
        seen = captured(
            cluster.inside("node2", [str(ROOT / "offpath"), *command]), cwd=work, env=os.environ | variables
        )
        assert seen.returncode == 0 and seen.stdout.count("\n") == 1, seen
        assert seen.stdout.startswith("10.99.0.2: 10.99.0.102:7001"), seen
    if not (paths().prefix / "bin" / "offpath-devices").exists():
        pytest.skip("no devices are built")
    variables |= {"OFFPATH_DPUS": f"node1=node1-dpu:7001/arch={platform.machine()};10.99.0.2=exec:true"}
    kinds = {}
    for node in cluster.plan.nodes:
        seen = captured(cluster.inside(node, [str(ROOT / "offpath"), "devices", "--json"]), env=os.environ | variables)
        (row,) = json.loads(seen.stdout)
        kinds[node] = (row["kind"], row["name"], row["state"])
    assert kinds["node1"] == ("remote", "node1-dpu:7001", "up")
    assert kinds["node2"][0] == "software"


@contextlib.contextmanager
def late(cluster, work, place, *command):
    """A job of two ranks, of which the second is late, started at `place`."""
    if not (work / "late").exists():
        subprocess.run(["mpicc.openmpi", PROGRAMS / "late.c", "-o", work / "late"], check=True)
    for name in ("post", "end"):
        (work / name).unlink(missing_ok=True)
    words = [str(ROOT / "offpath"), "run", "--dpus", "dpus.txt", "--policy", "*:host,ialltoall:64K-inf:dpu", *command]
    env = os.environ | launchers.environment(cluster.plan) | {"OFFPATH_DEVICE_KEY_FILE": str(work / "KEY")}
    job = subprocess.Popen(
        cluster.inside(place, [*words, "./late", "post", "end"]), cwd=work, env=env, stdout=-3, stderr=-1, text=True
    )
    try:
        yield job
    finally:
        (work / "post").touch()
        (work / "end").touch()
        job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0


def top(cluster, node, *options):
    words = cluster.inside(node, [str(ROOT / "offpath"), "top", "--once", "--interval", "0.3", *options])
    return captured(words)


def ranks_at(cluster, node):
    result = top(cluster, node, "--json")
    return json.loads(result.stdout)["jobs"][0]["ranks"] if result.returncode == 0 else []


def test_a_running_job_is_watched_on_its_hosts(cluster, work):
    """Each node shows the ranks that are there, with what their service on the DPU knows."""
    with late(cluster, work, "head", "--", "mpirun.openmpi", "-np", "2", "-H", "node1,node2"):
        (first,) = eventually(
            lambda: (ranks := ranks_at(cluster, "node1")) and (ranks[0]["oldest"] or {}).get("members") and ranks
        )
        assert (first["rank"], first["done"], first["in_flight"], first["pulled_bytes"]) == (0, 2, 1, 2 << 18)
        oldest = first["oldest"]
        assert (oldest["kind"], oldest["waits"], oldest["members"]) == ("exchange", "silent", [1])
        eventually(lambda: ranks_at(cluster, "node1")[0]["share"]["waited"] > 0.9)
        (second,) = ranks_at(cluster, "node2")
        assert (second["rank"], second["done"], second["in_flight"]) == (1, 2, 0)
        shown = top(cluster, "node2").stdout
        assert "1 ranks here, service is on a DPU, its agent process " in shown, shown


def test_metrics_of_a_run_on_a_node_are_those_of_its_service_on_the_dpu(cluster, work):
    """Each scrape has what is so at its time."""
    mpirun = ["mpirun.openmpi", "-np", "2", "-H", "node1,node2"]
    with late(cluster, work, "node1", "-q", "--metrics", "0", "--job-name", "ocean", "--", *mpirun) as job:
        url = re.fullmatch(r"offpath: metrics at (\S+)\n", job.stderr.readline())[1]

        def under_way():
            times_s, samples = scrape(cluster, "node1", url)
            sample = samples.get("oldest_operation_seconds")
            return (times_s, sample.value) if sample and samples["operations_done_total"].value == 2 else None

        (_, end_s), age_s = eventually(under_way)
        time.sleep(0.5)
        (begin_s, _), second = scrape(cluster, "node1", url)
        assert second["oldest_operation_seconds"].value - age_s >= begin_s - end_s
        rank, worker = second["operations_in_flight"], second["worker_cpu_seconds_total"]
        assert rank.value == 1 and worker.value > 0 and second["pulled_bytes_total"].value == 2 << 18
        assert rank.labels["rank"] == "0" and rank.labels["node"] == worker.labels["node"] == "node1"
        assert rank.labels["job_name"] == worker.labels["job_name"] == "ocean"


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_results_are_those_of_the_mpi(cluster, mpi):
    """Of a part of the programs of conformance, by the lab's own way to its DPUs."""
    argv = [program("conformance", mpi), "--every", "200"]
    assert_conforms(Place(4, cluster, 2), mpi, argv, {}, frozenset())


def test_the_lab_section(work, monkeypatch):
    """In its order, with a lab of our own."""
    monkeypatch.chdir(work)
    (work / "offpath").write_text(f'#!/bin/sh\nexec {ROOT}/offpath "$@"\n')
    (work / "offpath").chmod(0o755)
    name = f"t{uuid.uuid4().hex[:6]}"
    try:
        for command in lines("./offpath"):
            words = shlex.split(command.replace("x86_64", platform.machine()).replace("mpirun ", "mpirun.openmpi "))[1:]
            words = words[:2] + ([name] if words[1] == "down" else ["--name", name]) + words[2:]
            result = offpath(*words)
            assert result.returncode == 0, (command, result.stdout, result.stderr)
            if "./my_mpi_program" in command and "none" not in command:
                assert "20 collectives, 20 offloaded" in result.stderr, (command, result.stderr)
    finally:
        offpath("lab", "down", name)
