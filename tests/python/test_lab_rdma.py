# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that are virtual machines with RDMA: commands there, and MPI programs with services on RDMA."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conformance_support import EVERYTHING, MPIS, NATIVE, Place, assert_conforms, assert_same_lines, native, program
from conftest import (
    LIMIT_S,
    PROGRAM_SEED,
    ROOT,
    assert_one_line_error,
    captured,
    eventually,
    offpath,
    requires_root,
    succeeded,
)
from loss_support import meanwhile
from offpath.base.errors import UserError
from offpath.lab import Lab, inventory
from offpath.lab.plan import STATE_ROOT
from offpath.launch import mpis

pytestmark = [
    requires_root,
    pytest.mark.nightly,  # without an accelerator two machines take longer than all others together
    pytest.mark.skipif(not (ROOT / ".machines" / "ready").exists(), reason="needs what tools/setup-machines makes"),
]


@pytest.fixture(scope="module")
def machines():
    with Lab(nodes=2, rate="10gbit", name=f"r{os.getpid()}", rdma=True) as lab:
        yield lab
    assert not inventory.exists(lab.name) and not (STATE_ROOT / lab.name).exists()


def at(
    lab: Lab, place: str, *words: str, said: str = "", env: dict | None = None, cwd: Path = ROOT, limit_s: int = LIMIT_S
):
    return captured(lab.inside(place, words), input=said, timeout=limit_s, cwd=cwd, env=os.environ | (env or {}))


def test_a_command_in_a_machine(machines, tmp_path):
    kernel = at(machines, "node1", "uname", "-r").stdout
    assert kernel and kernel != os.uname().release + "\n"
    for node in machines.plan.nodes:
        assert "rxe0/1 state ACTIVE" in at(machines, node, "rdma", "link").stdout
    # As by ssh: input, both outputs, status, folder, variables
    script = 'read -r word; echo "$word $VALUE $(pwd) $(hostname)"; echo wrong >&2; exit 7'
    result = at(machines, "node2", "sh", "-c", script, said="hello\n", env={"VALUE": "a,b; c"})
    assert (result.stdout, result.stderr, result.returncode) == (f"hello a,b; c {ROOT} node2\n", "wrong\n", 7)
    long = "".join(f"{number}\n" for number in range(100_000))
    assert at(machines, "node1", "cat", said=long).stdout == long
    assert at(machines, "node1", "sh", "-c", "kill -9 $$").returncode == 128 + 9
    none = at(machines, "node1", "no-such-program")
    assert (none.returncode, none.stderr) == (127, "no-such-program: No such file or directory\n")
    # Files are ours to read, also below /tmp, and its own folders are its own
    (tmp_path / "file").write_text("ours\n")
    assert at(machines, "node1", "cat", "file", cwd=tmp_path).stdout == "ours\n"
    assert at(machines, "node1", "touch", str(tmp_path / "made")).returncode != 0
    assert at(machines, "node1", "touch", f"/tmp/{machines.name}").returncode == 0
    assert not os.path.exists(f"/tmp/{machines.name}") and not (tmp_path / "made").exists()
    # Who started it is gone: so is the command
    process = subprocess.Popen(machines.inside("node1", ["sleep", "4321"]))
    there = ["pgrep", "-f", "^sleep 4321"]
    assert eventually(lambda: at(machines, "node1", *there).returncode == 0)
    process.kill()
    process.wait()
    assert eventually(lambda: at(machines, "node1", *there).returncode != 0)


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("every", [97, pytest.param(1, marks=pytest.mark.nightly)])
def test_an_mpi_program_between_machines(mpi, every, machines):
    """Services find the RDMA device by themselves, and what is offloaded goes there."""
    before = [packets(machines, node) for node in machines.plan.nodes]
    words = [program("conformance", mpi), "--every", str(every)]
    assert_conforms(Place(2, machines), mpi, words, {}, frozenset())
    for node, earlier in zip(machines.plan.nodes, before):
        assert packets(machines, node) - earlier > 100
        assert at(machines, node, "pgrep", "-x", "offpathd").returncode != 0


# Of the MPI itself, beside services that use RDMA each time. A lab's Open MPI speaks TCP.
OF_MPI = {
    "openmpi": (mpis.OPENMPI, {}),
    "mpich": (mpis.MPICH, {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}),
    "mpich_card": (mpis.MPICH, {"UCX_TLS": "rc,self", "UCX_NET_DEVICES": "rxe0:1"}),
}


@pytest.mark.parametrize("of_mpi", OF_MPI)
def test_random_programs_between_machines(of_mpi, machines):
    mpi, env = OF_MPI[of_mpi]
    print(f"OFFPATH_TEST_SEED={PROGRAM_SEED}")
    before = packets(machines, "node1")
    argv = [program("conformance", mpi), "--random", "--steps", "200", "--seed", str(PROGRAM_SEED)]
    assert_conforms(Place(2, machines), mpi, argv, env, frozenset())
    assert packets(machines, "node1") - before > 100


@pytest.mark.parametrize("of_mpi", OF_MPI)
def test_windows_between_machines(of_mpi, machines):
    """Open MPI's lines are compared with MPICH's, too: natively it has some of them wrong."""
    mpi, env = OF_MPI[of_mpi]
    print(f"OFFPATH_TEST_SEED={PROGRAM_SEED}")
    words = ("--seed", str(PROGRAM_SEED), "--episodes", "20")
    expected = native(mpis.MPICH, 2, (program("conformance_rma", mpis.MPICH), *words))
    before = packets(machines, "node1")
    argv = [program("conformance_rma", mpi), *words]
    result = Place(2, machines).run(mpi, argv, NATIVE | EVERYTHING | env)
    assert_same_lines(expected, result.stdout, f"{of_mpi}, {' '.join(words)}", result.stderr)
    assert result.returncode == 0, result.stderr[-3000:]
    assert packets(machines, "node1") - before > 100


@pytest.mark.parametrize("mpi", MPIS)
def test_a_service_in_a_machine_is_killed(mpi, machines):
    """Cards were reading, or had read: the program gets right data, or an error, and nobody hangs."""
    with tempfile.TemporaryDirectory(dir=machines.plan.state_dir) as folder:
        before = packets(machines, "node1")
        with meanwhile(Path(folder), lambda: at(machines, "node1", "pkill", "-KILL", "-x", "offpathd")) as variables:
            argv = [str(ROOT / "build" / "release" / "tests" / "interpose" / mpi / "lost"), "busy"]
            result = machines.mpirun(mpi, 1, argv, offload=True, env=EVERYTHING | variables, timeout=LIMIT_S)
    assert result.returncode == 0 and "after the loss: ok" in result.stdout, result.stdout + result.stderr
    assert "the service on host node1 was lost" in result.stderr
    assert packets(machines, "node1") - before > 100


def packets(lab: Lab, node: str) -> int:
    """That its RDMA device has received."""
    words = at(lab, node, "cat", "/sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts").stdout
    return int(words)


def test_a_tree_below_a_folder_that_machines_have_of_their_own(lab_name):
    with tempfile.TemporaryDirectory(dir="/tmp") as tree:
        for folder in ("python", "include"):
            shutil.copytree(ROOT / folder, f"{tree}/{folder}", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "CMakePresets.json", tree)
        os.symlink(ROOT / ".machines", f"{tree}/.machines")
        env = {"PYTHONPATH": f"{tree}/python", "OFFPATH_PREFIX": str(ROOT / "build" / "release")}
        up = [sys.executable, "-m", "offpath", "lab", "up", "--rdma", "--nodes", "1", "--name", lab_name]
        succeeded(captured(up, timeout=300, cwd=tree, env=os.environ | env))


def test_what_does_not_fit_is_said(lab_name, monkeypatch):
    assert_one_line_error(offpath("lab", "up", "--rdma", "--dpus", "1", "--name", lab_name), "--rdma", "DPUs")
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool.startswith("qemu") else f"/usr/bin/{tool}")
    with pytest.raises(UserError, match="tools/setup"):
        Lab(nodes=1, name=lab_name, rdma=True).up()
    assert not inventory.exists(lab_name)


def test_what_is_left_of_a_killed_run_is_ended(machines):
    env = {"OFFPATH_LAB_RUN": "left"}
    assert at(machines, "node1", "sh", "-c", "setsid sleep 4322 </dev/null >/dev/null 2>&1 &", env=env).returncode == 0
    assert at(machines, "node1", "pgrep", "-f", "^sleep 4322").returncode == 0
    from offpath.lab import virtual

    virtual.end_run(machines.plan, machines.inside, "left", 0.0)
    assert at(machines, "node1", "pgrep", "-f", "^sleep 4322").returncode != 0


def suite(lab: Lab, name: str, which: str, env: dict | None = None) -> str:
    result = at(
        lab, "node1", str(ROOT / "build" / "release" / "bin" / name), f"--gtest_filter={which}", env=env, limit_s=900
    )
    assert result.returncode == 0 and "[  PASSED  ]" in result.stdout, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_no_processor_copies_what_a_card_can_read(machines):
    """And who does not know the job's key meets nobody."""
    assert "NoProcessorCopiesWhatIsSteady" in suite(machines, "fabric_rdma_test", "*")


@pytest.mark.nightly
def test_the_fabric_suites_on_verbs(machines):
    suite(machines, "fabric_test", "*/rdma")
    suite(machines, "fabric_test", "*/ucx*", {"OFFPATH_TEST_WIRES": "rc,self rxe0:1", "UCX_IB_GID_INDEX": "0"})


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["remote", "window", "window_loss", "notify", "operation", "team", "failure"])
def test_api_suites_on_verbs(name, machines):
    suite(machines, f"api_{name}_test", "*", {"OFFPATH_SERVICE_START_TIMEOUT_MS": "120000"})


@pytest.mark.nightly
def test_status_and_command_line(lab_name):
    assert offpath("lab", "up", "--rdma", "--name", lab_name).returncode == 0
    row = json.loads(offpath("lab", "status", lab_name, "--json").stdout)[0]
    assert (row["state"], row["node_count"]) == ("up", 2)
    there = offpath("lab", "exec", "--name", lab_name, "node2", "--", "sh", "-c", "hostname; exit 3")
    assert (there.stdout, there.returncode) == ("node2\n", 3)
    assert offpath("lab", "down", lab_name).returncode == 0
    assert not inventory.exists(lab_name)
