# SPDX-License-Identifier: BSD-3-Clause
"""A user's own cluster: names and files, launchers, nodes that nothing can be measured on. On real nodes of a Slurm:
test_slurm.py; by a hostfile: below."""

import json
import os
import subprocess
import sys

import pytest
from conftest import PROGRAMS, ROOT, assert_one_line_error, captured, offpath, require, requires_root, succeeded
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.launch import cluster_files, mpis, policy_table
from offpath.places import allocation
from offpath.places.allocation import node_facts_file
from offpath.places.asked import OnNodes
from offpath.plan import calibrate, machine

HOME = "XDG_CONFIG_HOME"


def test_facts_of_a_node(tmp_path):
    there, gone = tmp_path / "there", tmp_path / "gone"
    there.write_text("")
    measure = [sys.executable, "-c", "print('{\"speed\": 3}')"]
    command = [
        sys.executable,
        str(node_facts_file()),
        *measure,
        "--",
        str(there),
        str(gone),
    ]
    said = captured(command, env={"PMI_RANK": "0"}, check=True).stdout
    [facts] = allocation.facts_of(f"srun: hello\n[0] {said}offpath-node broken\n")
    assert facts["missing"] == [str(gone)] and facts["measured"] == {"speed": 3} and facts["rank"] == 0
    assert facts["node"] == os.uname().nodename and facts["cores"] == os.cpu_count()
    assert "version" not in facts  # nothing is tried unless it is asked for
    said = captured(command, env={"PMI_RANK": "1"}, check=True).stdout
    assert "measured" not in allocation.facts_of(said)[0]


def node(name, **other):
    return {
        "rank": 0,
        "node": name,
        "arch": "x86_64",
        "processor": "one",
        "cores": 4,
        "allowed": [0],
        "missing": [],
    } | other


@pytest.mark.parametrize(
    "facts, words",
    [
        ([node("a"), node("a")], ("All 2 ranks are on node a", "Ask for two nodes")),
        (
            [node("a"), node("b", cores=8)],
            ("different kinds", "4 cores; x86_64, one, 8 cores", "--constraint"),
        ),
        (
            [node("a"), node("b", processor="two")],
            ("different kinds", "x86_64, two, 4 cores"),
        ),
        (
            [node("a"), node("b", missing=["/x/offpathd"])],
            ("/x/offpathd is not on node b", "Install Offpath on all"),
        ),
        ([node("a"), node("b"), node("b")], ("have 1 to 2 ranks",)),
    ],
)
def test_nodes_on_which_nothing_can_be_measured(facts, words):
    with pytest.raises(UserError) as error:
        allocation.checked(facts)
    assert all(word in str(error.value) for word in words), error.value


def test_nodes_of_one_kind():
    assert allocation.checked([node("b"), node("a"), node("a"), node("b")]) == (
        ["a", "b"],
        2,
    )


def test_a_launcher_is_told_how_many():
    words = ("mpirun", "-np", "{ranks}", "--map-by=ppr:{ppn}:node", "-N{nodes}")
    chosen = allocation.Launcher(words, "openmpi", "c", None, False)
    assert chosen.command(4, 2) == ["mpirun", "-np", "8", "--map-by=ppr:2:node", "-N4"] and chosen.counts_nodes
    assert not allocation.Launcher(("srun",), "mpich", "c", None, False).counts_nodes


def fake(folder, script):
    """An mpirun of Open MPI that starts nothing."""
    file = folder / "mpirun"
    file.write_text(f'#!/bin/sh\n[ "$1" != --version ] || {{ echo "mpirun (Open MPI) 4.1.4"; exit; }}\n{script}\n')
    file.chmod(0o755)
    return str(file)


def facts_script(*facts):
    return "".join(f"echo '{allocation.START}{json.dumps(each)}'\n" for each in facts)


@pytest.fixture
def built():
    require(paths().service, paths().backend_library("openmpi"))


@pytest.fixture
def said(built, tmp_path, monkeypatch):
    """What is wrong with a launcher or the nodes on which it starts ranks."""
    monkeypatch.setenv(HOME, str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def ask(launch, mpi="both", cluster="hall", cores=None):
        with pytest.raises(UserError) as error:
            allocation.place(allocation.launcher(OnNodes(launch, cluster, cores), mpi))
        return str(error.value)

    return ask


def test_launchers_that_start_nothing(said, tmp_path, monkeypatch):
    two = fake(tmp_path, facts_script(node("a"), node("b", cores=8)))
    assert "is empty" in said("") and "no command line" in said("'")
    assert "was not found" in said("no-such-launcher") and "is no launcher known here" in said("true")
    assert "different kinds" in said(two)
    assert "which cluster" in said(two, cluster=None) and "cannot name a cluster" in said(two, cluster="../x")
    assert "not to what --mpi says" in said(two, mpi="mpich") and "not a list of cores" in said(two, cores="few")
    monkeypatch.setenv("OFFPATH_CLUSTER", "a/b")
    assert "OFFPATH_CLUSTER: 'a/b'" in said(two, cluster=None)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    assert "once for each rank" in said(two)


def test_nodes_that_do_not_answer(said, tmp_path):
    assert "Ask for two nodes" in said(fake(tmp_path, facts_script(node("a"))))
    failed = said(fake(tmp_path, "echo no route to host >&2; exit 7"))
    assert "did not start anything" in failed and "no route to host; exit 7" in failed
    # The ranks of an MPI job: what they write is not there, or says that each is alone.
    facts = facts_script(node("a"), node("b"))
    assert "all nodes share" in said(fake(tmp_path, facts))
    alone = """while [ $# -gt 1 ]; do [ "$1" != --json ] || echo '{"rows": [{"ranks": 1}]}' >"$2"; shift; done\n"""
    assert "2 processes were jobs of 1 rank each" in said(fake(tmp_path, alone + facts))
    garbage = alone.replace('"ranks": 1', '"ranks": 3') + f"echo 'offpath-node {{\"rank\"'\n{facts}"
    assert "Of 3 ranks only 2 were understood" in said(fake(tmp_path, garbage))


@pytest.mark.parametrize("command", ("tune", "calibrate"))
def test_what_cannot_be_measured_is_one_line(built, command, tmp_path):
    two = fake(tmp_path, facts_script(node("a"), node("b", cores=8)))
    home, words = {HOME: str(tmp_path)}, (command, "--launch", two, "--cluster", "hall")
    assert_one_line_error(offpath(*words, env=home, cwd=tmp_path), "different kinds", "--constraint")
    (tmp_path / "file").write_text("in the way")
    assert_one_line_error(offpath(*words, env={HOME: str(tmp_path / "file")}, cwd=tmp_path), "cannot be written")
    assert_one_line_error(offpath(command, "--share"), "--share is about the nodes of a job", "--launch")


def test_steps_of_a_job():
    assert allocation.in_step({"SLURM_STEP_ID": "0"}) and not allocation.in_step({"SLURM_STEP_ID": "4294967290"})
    assert not allocation.in_step({"SLURM_JOB_ID": "7"})


def test_srun_starts_programs_of_one_mpi(built, tmp_path):
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    result = offpath("tune", "--launch", str(tmp_path / "srun"), "--cluster", "hall", env={HOME: str(tmp_path)})
    assert result.returncode != 0 and "Give --mpi openmpi or --mpi mpich" in result.stderr


def test_which_cluster(tmp_path):
    assert cluster_files.name({}) is None
    assert cluster_files.name({"SLURM_CLUSTER_NAME": "s"}) == "s"
    assert cluster_files.name({"SLURM_CLUSTER_NAME": "s", "OFFPATH_CLUSTER": "ours"}) == "ours"
    for wrong in (".", "..", "a/b", "", " "):
        with pytest.raises(UserError):
            cluster_files.checked(wrong, "--cluster")


def keep(home, cluster, mpi, what, text=""):
    file = cluster_files.file(cluster, mpi, what, {HOME: str(home)})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_which_machine_file(tmp_path):
    home = {HOME: str(tmp_path)}
    assert cluster_files.machine_file(None, home) is None
    first = keep(tmp_path, "one", "openmpi", cluster_files.MACHINE)
    assert cluster_files.machine_file(None, home) == cluster_files.machine_file("openmpi", home) == first
    assert cluster_files.machine_file("mpich", home) is None
    second = keep(tmp_path, "two", "mpich", cluster_files.MACHINE)
    assert cluster_files.machine_file(None, home) is None, "two clusters, and nobody says which"
    assert cluster_files.machine_file(None, home | {cluster_files.NAME_VARIABLE: "two"}) == second
    keep(tmp_path, "two", "openmpi", cluster_files.MACHINE)
    assert cluster_files.machine_file(None, home | {"SLURM_CLUSTER_NAME": "two"}) is None, "two MPIs"
    assert cluster_files.machine_file("mpich", home | {"SLURM_CLUSTER_NAME": "two"}) == second
    assert str(cluster_files.machine_file(None, home | {cluster_files.MACHINE_VARIABLE: "/a/b"})) == "/a/b"


def test_the_planner_finds_the_machine_of_the_cluster(built, tmp_path):
    text = json.dumps(machine.default() | {"network": machine.DEFAULTS["network"] | {"rate_bytes_per_ns": 12.5}})
    file = keep(tmp_path, "hall", "mpich", cluster_files.MACHINE, text)
    scale = ("plan", "scale", "--nodes", "2", "--json")
    fast, slow = (offpath(*scale, env={HOME: str(home)}) for home in (tmp_path, tmp_path / "none"))
    assert f"the machine is that of {file}." in fast.stderr and slow.stderr == ""
    times = [json.loads(each.stdout)["rows"][0]["host_ns"] for each in (fast, slow)]
    assert times[0] < times[1]
    result = offpath(*scale, env={cluster_files.MACHINE_VARIABLE: str(tmp_path / "gone")})
    assert result.returncode != 0 and "cannot be read" in result.stderr


def test_the_rows_of_the_cluster_and_the_mpi(built, tmp_path):
    """The general file is for whoever has none; OFFPATH_POLICY_FILE wins over both."""
    rows = {"openmpi": "ialltoall:1M-inf:dpu", "mpich": "ialltoall:2M-inf:dpu"}
    kept = {mpi: keep(tmp_path, "hall", mpi, cluster_files.POLICY, row) for mpi, row in rows.items()}
    env = {
        HOME: str(tmp_path),
        cluster_files.NAME_VARIABLE: "hall",
        policy_table.FILE_VARIABLE: "",
    }

    def shown(mpi, **more):
        program = str(paths().bench_program("collectives", mpi))
        return json.loads(offpath("info", "--policy", "--json", program, env=env | more).stdout)["rows"]

    for mpi, row in rows.items():
        assert [each["text"] for each in shown(mpi) if each["source"] == str(kept[mpi])] == [row]
    assert not [each for each in shown("mpich", OFFPATH_POLICY_FILE="none") if each["source"] != "measured"]
    assert not [each for each in shown("mpich", OFFPATH_CLUSTER="elsewhere") if each["source"] != "measured"]
    found = json.loads(offpath("info", "--json", env=env).stdout)["cluster"]
    assert found == {
        "name": "hall",
        "machine": {},
        "policy": {mpi: str(file) for mpi, file in kept.items()},
    }


@pytest.mark.machine
def test_the_mpi_of_a_command_line(built):
    of_mpich = str(paths().bench_program("collectives", "mpich"))
    assert mpis.of_command(["srun", "-n", "2", of_mpich]) == mpis.of_command([of_mpich]) == "mpich"
    assert mpis.of_command(["mpirun.openmpi", "-np", "2", "./any"]) == "openmpi"
    assert mpis.of_command(["srun", "sh"]) is None


def test_where_ranks_and_services_are_for_the_model():
    meta = {"place": "allocation", "nodes": 2, "ppn": 2, "shared_cores": False}
    assert calibrate.placement_of(meta).cores is None
    where = calibrate.placement_of(meta | {"shared_cores": True})
    assert where.cores == [[0, 1], [2, 3]] and where.service_cores == [0, 2]


@requires_root
@pytest.mark.nightly
@pytest.mark.parametrize("mpi", ("openmpi", "mpich"))
def test_by_a_hostfile(lab, mpi, tmp_path):
    """On the nodes of a lab, by mpirun alone: a machine file and a policy for this MPI, and a run that uses them."""
    (tmp_path / "hosts").write_text("node1\nnode2\n")
    env = {
        HOME: str(tmp_path / "config"),
        "OFFPATH_POLICY_FILE": "",
        "OFFPATH_CLUSTER": "hall",
    }
    environment = os.environ | env
    layout = "--map-by ppr:{ppn}:node -hostfile hosts" if mpi == "openmpi" else "-ppn {ppn} -f hosts"
    launch = f"mpirun.{mpi} -np {{ranks}} {layout}"

    def run(*words):
        command = [
            "lab",
            "exec",
            "--name",
            lab.name,
            "head",
            "--",
            str(ROOT / "offpath"),
            *words,
        ]
        result = succeeded(captured([ROOT / "offpath", *command], env=environment, cwd=tmp_path))
        return result

    run("calibrate", "--launch", launch, "--share", "--launches", "1", "--repeats", "3")
    found = machine.load(tmp_path / "config" / "offpath" / "clusters" / "hall" / mpi / "machine.json")
    assert found["environment"]["node_names"] == ["node1", "node2"] and found["native"]["family"] == mpi
    assert found["service"]["own_cores"] is False and found["network"]["burst_bytes"] == 0
    run("tune", "--launch", launch, "--share", "--collectives", "ialltoall", "--sizes", "4K,4M", "--runs", "1",
        "--repeats", "3")  # fmt: skip
    rows = (tmp_path / "config" / "offpath" / "clusters" / "hall" / mpi / "policy").read_text()
    assert "# cluster hall: 2 x 1 ranks" in rows and "ialltoall:0-inf:nodes=2:host" in rows
    words = launch.replace("{ranks}", "2").replace("{ppn}", "1").split()
    subprocess.run([f"mpicc.{mpi}", "-w", PROGRAMS / "checked.c", "-o", tmp_path / "checked"], check=True)
    keep(tmp_path / "config", "hall", mpi, cluster_files.POLICY, "*:dpu\n")  # whatever was found, this shows
    assert "12 collectives, 12 offloaded" in run("run", "--share", "--", *words, "./checked").stderr
