# SPDX-License-Identifier: BSD-3-Clause
"""A service on a DPU that a signal has stopped, however it was started: its program hears of it, and nothing stays."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from api_support import environment, finish  # noqa: F401
from conftest import eventually
from loss_support import services_in, stop
from offpath.base.paths import paths
from test_dpus import starter

PROGRAM = """
import secrets, numpy, offpath
session = offpath.attach(bytes(32), node_only=True)
team = offpath.Team(session, secrets.token_bytes(16), 0, [session.address])
print("ready", flush=True)
input()
try:
    team.allreduce(numpy.arange(1e5))
    print("went well")
except offpath.OffpathError as error:
    print(error)
session.close()
"""


@pytest.fixture(params=["exec", "starter"])
def program(request, tmp_path, environment):  # noqa: F811
    """Its program, attached; the service's process; the service's folder."""
    folder = tmp_path / "dpu"
    folder.mkdir(mode=0o700)
    limit = {"OFFPATH_SERVICE_SILENCE_MS": "800"}
    there = {"OFFPATH_RUNTIME_DIR": str(folder), **limit}
    limit = {**limit, "OFFPATH_JOB_SECRET": "of this job alone"}  # which the DPU is not told
    with contextlib.ExitStack() as opened:
        if request.param == "exec":
            more = {"OFFPATH_DPU": f"exec:OFFPATH_RUNTIME_DIR={folder} {paths().service} --for-agents --share"}
        else:
            with pytest.MonkeyPatch.context() as patch:
                for name, value in there.items():
                    patch.setenv(name, value)
                address, more = opened.enter_context(starter(tmp_path, "--share"))
            more = {**more, "OFFPATH_DPU": address}
        started = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=environment | limit | more, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert started.stdout.readline() == "ready\n", started.communicate()
        yield started, *services_in(folder), folder
        started.kill()
        started.communicate()


def go_on(started):
    said, errors = started.communicate("\n", timeout=100)
    assert errors == ""
    return said.strip()


@pytest.mark.machine
def test_one_that_stays_stopped_is_ended(program):
    started, service, folder = program
    stop(service)
    said = go_on(started)
    assert "service" in said and "lost" in said, said
    eventually(lambda: not Path(f"/proc/{service}").exists())
    eventually(lambda: {file.name for file in folder.iterdir()} <= {"lock"})


@pytest.mark.machine
def test_one_that_goes_on_serves(program):
    started, service, _ = program
    stop(service)
    os.kill(service, signal.SIGCONT)
    assert go_on(started) == "went well"
