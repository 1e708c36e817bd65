# SPDX-License-Identifier: BSD-3-Clause
"""The wheel of this tree as it is built, installed into an empty Python environment and used from there."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from api_support import environment, finish  # noqa: F401
from conftest import LIMIT_S, ROOT, captured, succeeded

RANK = """
import array, os, offpath
with offpath.init() as team:
    got = array.array("d", bytes(8))
    team.allreduce(array.array("d", [team.rank + 1.0]), got)
    service = os.readlink(f"/proc/{team.session.counters()['service_pid']}/exe")
    print(got[0], os.path.relpath(service, os.path.dirname(offpath.__file__)))
"""


@pytest.fixture(scope="module")
def wheel(environment, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("wheel")
    command = [ROOT / "tools" / "wheel", "--as-built", folder]
    made = succeeded(captured(command))
    assert "-py3-none-linux_" in made.stdout.split()[-1]
    return Path(made.stdout.split()[-1])


@pytest.fixture(scope="module")
def installed(wheel):
    folder = wheel.parent
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


def run_two_ranks(python: Path, environment: dict) -> None:  # noqa: F811
    names = ("OFFPATH_SERVICE_SHARE", "OFFPATH_RUNTIME_DIR", "PATH", "HOME")
    bare = {name: environment[name] for name in names if name in environment}
    bare |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    processes = [
        subprocess.Popen(
            [python, "-c", RANK], env=bare | {"RANK": str(rank)}, cwd="/", stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    for process in processes:
        text, error = finish(process)
        assert text.split() == ["3.0", "native/bin/offpathd"], error


def test_it_brings_its_service(installed, environment):  # noqa: F811
    run_two_ranks(installed, environment)


def interpreter(version: str) -> str | None:
    """As `pythonX.Y` on the PATH, or where pyenv puts them."""
    places = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    return shutil.which(f"python{version}", path=os.defpath) or next(map(str, places), None)


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_other_pythons_start_it(version, wheel, environment, tmp_path):  # noqa: F811
    """With what pip gives them: not the versions that this tree was tested with."""
    base = interpreter(version)
    if base is None:
        pytest.skip(f"there is no python{version} here (on the PATH, or of pyenv)")
    subprocess.run([base, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, timeout=LIMIT_S)
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OFFPATH_LOG": "warn"}
    for words in (["--version"], ["--help"], ["info"]):
        said = captured([python.with_name("offpath"), *words], env=bare, cwd="/")
        assert said.returncode == 0 and "Traceback" not in said.stderr, said.stderr
    run_two_ranks(python, environment)
    program = [*shlex.split("mpirun.mpich -np 2"), str(python), "-c", "print('here')"]
    command = [python.with_name("offpath"), "run", "--share", "--", *program]
    said = captured(command, env=bare, cwd="/")
    assert said.returncode == 0 and said.stdout.count("here") == 2, said.stderr


def test_it_brings_the_command_line_and_its_types(installed):
    command = installed.with_name("offpath")
    assert os.access(command, os.X_OK)
    where = captured([installed, "-c", "import offpath; print(offpath.__file__)"])
    package = os.path.dirname(where.stdout)
    assert os.path.exists(os.path.join(package, "py.typed")) and not package.startswith(str(ROOT))
