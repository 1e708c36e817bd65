# SPDX-License-Identifier: BSD-3-Clause
"""The wheel that tools/wheel makes, installed into a Python environment that has nothing else, and used from there."""

import os
import subprocess
import sys

import pytest
from api_support import environment, finish  # noqa: F401
from conftest import LIMIT_S, ROOT

RANK = """
import array, os, offpath
with offpath.init() as team:
    got = array.array("d", bytes(8))
    team.allreduce(array.array("d", [team.rank + 1.0]), got)
    service = os.readlink(f"/proc/{team.session.counters()['service_pid']}/exe")
    print(got[0], os.path.relpath(service, os.path.dirname(offpath.__file__)))
"""


@pytest.fixture(scope="module")
def installed(environment, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("wheel")
    made = subprocess.run([ROOT / "tools" / "wheel", folder], capture_output=True, text=True, timeout=LIMIT_S)
    assert made.returncode == 0, made.stderr
    wheel = made.stdout.split()[-1]
    assert "-py3-none-linux_" in wheel
    python = folder / "bare" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "bare"], check=True)
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(pip, check=True, timeout=LIMIT_S)
    return python


def test_it_has_every_module(installed):
    """Also those that no other module imports."""
    [home] = installed.parents[1].glob("lib/python*/site-packages/offpath")
    folders = home, ROOT / "python" / "offpath"
    there, wanted = ({str(file.relative_to(folder)) for file in folder.rglob("*.py")} for folder in folders)
    assert wanted == there, wanted ^ there


def test_it_brings_its_service(installed, environment):  # noqa: F811
    names = ("OFFPATH_SERVICE_SHARE", "OFFPATH_RUNTIME_DIR", "PATH", "HOME")
    bare = {name: environment[name] for name in names if name in environment}
    bare |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    processes = [
        subprocess.Popen(
            [installed, "-c", RANK], env=bare | {"RANK": str(rank)}, cwd="/", stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    for process in processes:
        text, error = finish(process)
        assert text.split() == ["3.0", "native/bin/offpathd"], error


def test_it_brings_the_command_line_and_its_types(installed):
    command = installed.with_name("offpath")
    assert os.access(command, os.X_OK)
    where = subprocess.run([installed, "-c", "import offpath; print(offpath.__file__)"], capture_output=True, text=True)
    package = os.path.dirname(where.stdout)
    assert os.path.exists(os.path.join(package, "py.typed")) and not package.startswith(str(ROOT))
