# SPDX-License-Identifier: BSD-3-Clause
"""Tasks on DPUs that are machines: native, Python's and PyTorch's; where code is found there; DPUs that reboot."""

import json
import os
import re
import shlex
import subprocess
import sys
import uuid

import pytest
from api_support import require_executors
from conftest import LIMIT_S, PROGRAMS, ROOT, captured, offpath, requires_root, succeeded
from loss_support import meanwhile
from offpath.base.files import new_secret
from offpath.base.paths import paths
from offpath.dpu import service
from offpath.lab import Lab
from test_api_task import NATIVE, build
from test_lab_cut_dpus import heal, reboot
from torch_support import environment, interpreter

pytestmark = requires_root
GUIDE = (ROOT / "docs" / "guide-tasks.md").read_text()
CRASH = "  if (factor == -11) *(volatile int*)16 = 1;\n"


@pytest.fixture(scope="module", autouse=True)
def executors():
    require_executors()


@pytest.fixture(scope="module")
def machine():
    with Lab(1, "1gbit", dpus=1, name=f"t{uuid.uuid4().hex[:6]}", link_latency="20us") as lab:
        yield lab


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    crashing = NATIVE.replace("  const double* x", CRASH + "  const double* x", 1)
    return f"{build(tmp_path_factory.mktemp('native'), crashing)}:scale"


def at_node(lab, *words, python=sys.executable, env=None):
    """A program whose service is on the DPU of its node."""
    variables = os.environ | {"PYTHONPATH": str(ROOT / "python"), "OFFPATH_DPUS": lab.dpus()} | (env or {})
    command = lab.inside("node1", [python, *map(str, words)])
    return captured(command, env=variables)


def test_tasks_run_there(machine, native):
    done = at_node(machine, PROGRAMS / "far_tasks.py", native)
    assert done.returncode == 0 and done.stdout == "all is well\n", done.stderr


def test_the_guides_program_runs_there_by_a_list(machine, tmp_path):
    """Whose object is not where the program has it, but in the folder that the list names."""
    for name, text in re.findall(r"```c\n// (\S+)\n(.*?)```", GUIDE, re.DOTALL):
        (tmp_path / name).write_text(text)
    (tmp_path / "there").mkdir()
    include, lib = f"-I{ROOT}/include", paths().lib
    for words in (
        ["-shared", "-fPIC", "-o", "there/libscale.so", "scale.c"],
        ["-o", "main", "main.c", f"-L{lib}", f"-Wl,-rpath,{lib}", "-loffpath"],
    ):
        subprocess.run(["gcc", include, *words], cwd=tmp_path, check=True)
    (command,) = re.findall(r"^    (offpath run --dpus .*)$", GUIDE, re.MULTILINE)
    new_secret(tmp_path / "KEY")
    log = tmp_path / "starter.log"
    words = [str(paths().service), "--listen", "0.0.0.0:7001", "--key-file", "KEY"]
    with open(log, "wb") as output:
        starter = subprocess.Popen(
            machine.inside("node1-dpu", words), cwd=tmp_path, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )
    try:
        service.await_listening(starter, "node1-dpu:7001", log)
        variables = os.environ | {"OFFPATH_DEVICE_KEY_FILE": str(tmp_path / "KEY")}
        words = [str(ROOT / "offpath"), *shlex.split(command)[1:]]
        tried = (("/nowhere", 1, "it is not on the executor's machine"), ("there", 0, "values[7] is 42"))
        for folder, code, printed in tried:
            (tmp_path / "dpus.txt").write_text(f"node1 node1-dpu functions={tmp_path / folder} executors=2\n")
            done = captured(machine.inside("node1", words), cwd=tmp_path, env=variables)
            assert done.returncode == code and printed in done.stdout + done.stderr, done
    finally:
        starter.terminate()
        starter.wait()


@pytest.mark.parametrize(
    "python, words", [("/nowhere/python", "cannot execute"), ("bare", "has no working package offpath")]
)
def test_a_python_that_cannot_run_them(machine, tmp_path, python, words):
    if python == "bare":
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
        (tmp_path / "offpath.py").write_text("raise ImportError('of another release')\n")
        python = str(tmp_path / "python")
        (tmp_path / "python").write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {tmp_path}/bare/bin/python "$@"\n')
        (tmp_path / "python").chmod(0o755)
    code = (
        "import os, secrets, offpath\n"
        "with offpath.attach(secrets.token_bytes(32), node_only=True) as session:\n"
        "    os.environ.pop('OFFPATH_TASK_PYTHON')\n"
        "    try:\n"
        "        session.task(os.getpid).wait()\n"
        "    except offpath.TaskError as error:\n"
        "        print(error)\n"
    )
    done = at_node(machine, "-c", code, env={"OFFPATH_TASK_PYTHON": python})
    assert done.returncode == 0 and words in done.stdout, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("brief", [["brief"], pytest.param([], marks=pytest.mark.nightly)])
def test_a_training_is_the_same_with_executors_there(machine, tmp_path, brief):
    """And when its service is lost in mid-epoch."""
    python = interpreter()
    done = at_node(machine, PROGRAMS / "torch_training.py", tmp_path, *brief, python=python, env=environment())
    assert done.returncode == 0 and done.stdout == "the same\n", done.stderr


def test_molecular_dynamics_has_the_hosts_results(machine, tmp_path):
    """Lists are sent ahead, positions once a step; two ranks share the DPU."""
    program = paths().prefix / "apps" / "openmpi" / "minimd_tasks"
    if not program.exists():
        pytest.skip("not built for Open MPI")
    found = {}
    for schedule, threads in (("relaxed", "1"), ("offpath", "1"), ("hybrid", "3")):
        file = tmp_path / f"{schedule}.json"
        options = ["--cells", "8", "--steps", "24", "--every", "4", "--thermo", "8", "--guard", "on"]
        argv = [str(program), *options, "--schedule", schedule, "--dpu-threads", threads, "--json", str(file)]
        result = machine.mpirun("openmpi", 2, argv, env={"OFFPATH_DPUS": machine.dpus()}, timeout=LIMIT_S)
        assert result.returncode == 0 and "verified: yes" in result.stdout, result.stderr
        found[schedule] = json.loads(file.read_text())
    assert found["offpath"]["thermo"] == found["relaxed"]["thermo"]  # the same sums in the same order
    assert found["offpath"]["relaxed"] == found["offpath"]["rebuilds"] == 6
    for row, expected in zip(found["hybrid"]["thermo"], found["relaxed"]["thermo"]):
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_tiles_are_got_and_multiplied_there(machine, tmp_path):
    """By one service, which has no memory of the ranks: tiles are copied to its tasks."""
    program = paths().prefix / "apps" / "mpich" / "bspmm_tasks"
    if not program.exists():
        pytest.skip("not built for MPICH")
    file = tmp_path / "out.json"
    argv = [str(program), "--tile", "24", "--tiles", "5", "--products", "tasks", "--check", "--json", str(file)]
    env = {"OFFPATH_DPUS": machine.dpus(), "OFFPATH_POLICY": "window:dpu"}
    result = machine.mpirun("mpich", 2, argv, offload=True, env=env, timeout=LIMIT_S)
    assert result.returncode == 0 and json.loads(file.read_text())["verified"], result.said
    assert all(rank["windows"]["operations_count"] > 0 < rank["elsewhere_cpu_ns"] for rank in result.stats)


def test_the_benchmark_compares_with_the_link(tmp_path):
    file = tmp_path / "tasks.json"
    options = ("--repeats", "20", "--count", "200", "--runs", "1", "--link-latency", "20us", "--json", str(file))
    succeeded(offpath("bench", "tasks", "--placement", "dpu", *options))
    (row,) = json.loads(file.read_text())["rows"]
    assert row["placement"] == "dpu" and row["round_trip_us_min"] > 2 * 20
    assert row["empty_task_wait_us_min"] > 2 * 20 and row["tasks_per_second"] > 0


def test_a_dpu_that_reboots_loses_its_tasks(machine, native, tmp_path):
    try:
        with meanwhile(tmp_path, lambda: reboot(machine)) as variables:
            env = variables | {"OFFPATH_SERVICE_SILENCE_MS": "1000"}
            done = at_node(machine, PROGRAMS / "far_tasks.py", native, "lost", env=env)
    finally:
        heal(machine)
    assert done.returncode == 0 and done.stdout == "lost: ServiceLostError\n" * 2, done.stdout + done.stderr
