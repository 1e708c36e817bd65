# SPDX-License-Identifier: BSD-3-Clause
"""Cores that a list names for a DPU and that whoever starts its service may not use: what is said, and where."""

import contextlib
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from conftest import LIMIT_S, captured, eventually, offpath, requires_root
from offpath.base.paths import paths
from offpath.lab import inventory
from offpath.launch.local import available_cores

TOKEN_BYTES = 32
NOWHERE = "4000"  # no machine of ours has that core


@contextlib.contextmanager
def confined():
    """A command line's beginning: what follows runs in a control group that has the first core only, as in a job."""
    if not inventory.has_slurm_groups() or len(available_cores()) < 2:
        pytest.skip("needs control groups of version 1, and two cores")
    group = inventory.SLURM_GROUP_ROOT / "cpuset" / f"offpath-test-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    try:
        (group / "cpuset.mems").write_text((group.parent / "cpuset.mems").read_text())
        (group / "cpuset.cpus").write_text(str(available_cores()[0]))
        yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        eventually(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def for_agents(folder: Path, cores: str, before=()):
    """What starts the service of a job on a DPU, as ssh does; it must refuse."""
    return subprocess.run(
        [*before, str(paths().service), "--for-agents", "--cores", cores],
        input=bytes(range(TOKEN_BYTES)), capture_output=True, timeout=LIMIT_S,
        env=os.environ | {"OFFPATH_RUNTIME_DIR": str(folder)},
    )  # fmt: skip


def test_cores_that_the_machine_does_not_have(tmp_path):
    result = for_agents(tmp_path, NOWHERE)
    assert result.returncode == 1 and result.stdout == b""
    assert result.stderr.startswith(b"offpathd: cannot run on cores 4000 (this machine has 0"), result.stderr
    assert result.stderr.endswith(b"). Name some of these\n"), result.stderr


@requires_root
def test_cores_that_a_control_group_forbids(tmp_path):
    first, second = available_cores()[:2]
    with confined() as before:
        result = for_agents(tmp_path, str(second), before)
    assert result.returncode == 1, result.stdout
    said = f"cannot run on cores {second} (its control group, like a job's, allows {first})."
    assert said in result.stderr.decode() and b"start it outside" in result.stderr


ATTACH = """
from offpath.api.session import attach
try:
    attach(bytes(32))
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize(
    "command, said",
    [
        ("OFFPATHD --for-agents --cores 4000", "cannot run on cores 4000 (this machine has 0"),
        ("OFFPATHD --for-agents --cores 4000", "). Name some of these"),
        ("taskset -c 4000 OFFPATHD --for-agents", "taskset: failed to set"),
        (
            "taskset -c 4000 OFFPATHD --for-agents",
            ". Run that command by hand inside the job, or leave OFFPATH_DPU out",
        ),
    ],
)
def test_a_client_is_told_in_one_line(tmp_path, command, said):
    """By what offpathd says there, with its own advice; or by what another command says, with ours."""
    (tmp_path / "OFFPATHD").symlink_to(paths().service)
    (tmp_path / "run").mkdir(mode=0o700)
    variables = {
        "OFFPATH_DPU": f"exec:{command}", "OFFPATH_RUNTIME_DIR": str(tmp_path / "run"),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }  # fmt: skip
    result = captured([sys.executable, "-c", ATTACH], env=os.environ | variables)
    assert result.stderr == "" and result.stdout.count("\n") == 1, result
    assert f"the DPU 'exec:{command}' cannot be reached: " in result.stdout and said in result.stdout, result.stdout


@requires_root
def test_check_says_it_before_a_job_does(tmp_path):
    first, second = available_cores()[:2]
    with confined() as before:
        words = " ".join(f"'{word}'" for word in before)
        ssh = tmp_path / "ssh"
        ssh.write_text(
            f'#!/bin/sh\nwhile [ "$1" != offpathd ]; do shift; done; shift\nexec {words} {paths().service} "$@"\n'
        )
        ssh.chmod(0o755)
        (tmp_path / "dpus").write_text(f"localhost one ssh cores={first}\nlocalhost two ssh cores={first}-{second}\n")
        result = offpath("dpus", "check", str(tmp_path / "dpus"), env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    one, two = result.stdout.splitlines()
    assert f", 1 of {os.sysconf('SC_NPROCESSORS_ONLN')} cores, " in one, one
    assert f"MISSING: the list says cores={first}-{second}, and offpathd there may not use core {second}" in two, two
    assert f"(it has {first} of a control group, as a job's" in two and result.returncode == 1, two
