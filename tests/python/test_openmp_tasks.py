# SPDX-License-Identifier: BSD-3-Clause
"""Tasks whose functions lie in a program's own code for devices, and such with target regions in them."""

import os
import secrets
import shutil
import subprocess

import numpy as np
import offpath
import openmp_support
import pytest
from conftest import LIMIT_S, ROOT, captured, succeeded
from offpath.base.paths import paths
from openmp_support import PROGRAMS, TARGETS, Builder, requires, run
from test_openmp import own_runtime_folder  # noqa: F401

pytestmark = requires(openmp_support.missing_compiler())
SOURCE = PROGRAMS / "target_tasks.c"
SHARED = {"OFFPATH_SERVICE_SHARE": "1"}


def with_offpath() -> list[str]:
    return [f"-I{ROOT / 'include'}", f"-L{paths().lib}", "-loffpath", f"-Wl,-rpath,{paths().lib}"]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("target_tasks")
    Builder(folder).compile([SOURCE, "-o", folder / "target_tasks", *with_offpath()])
    return folder / "target_tasks"


def check(program, **env):
    result = succeeded(run(program, env={**SHARED, **env}))
    assert result.stdout == "all is right\n" and result.stderr == ""


def test_functions_of_the_program_itself(program):
    check(program)


def test_functions_of_a_program_in_cplusplus(tmp_path):
    source = PROGRAMS / "target_tasks_cplusplus.cpp"
    words = ["-std=c++20", source, "-o", tmp_path / "program", *with_offpath()]
    Builder(tmp_path).compile(words, language="c++")
    check(tmp_path / "program")


def test_functions_of_a_stripped_program(program, tmp_path):
    subprocess.run(["strip", program, "-o", tmp_path / "stripped"], check=True)
    check(tmp_path / "stripped")


def test_functions_of_a_program_that_plain_clang_has_built(tmp_path):
    words = ["clang-14", "-O2", "-fopenmp", f"-fopenmp-targets={TARGETS['x86_64']}", SOURCE, *with_offpath()]
    subprocess.run([*words, "-o", tmp_path / "plain"], check=True, timeout=LIMIT_S)
    check(tmp_path / "plain", LD_LIBRARY_PATH=str(paths().lib))


def test_the_executors_folders_come_first(program, tmp_path):
    """As on a machine where the program lies elsewhere: what is there is taken, and has to have code for devices."""
    (tmp_path / program.name).write_bytes(b"\x7fELF and nothing more")
    check(program, OFFPATH_TASK_FOLDERS=str(tmp_path))  # none for devices in that one: the next place
    shutil.copy(program, tmp_path / program.name)
    check(program, OFFPATH_TASK_FOLDERS=str(tmp_path))


def test_device_code_needs_no_library_of_the_host_alone(program, tmp_path):
    """liboffpath was named by -l, and no function for devices uses it."""
    whole = program.read_bytes()
    images = [whole[at:] for at in range(1, len(whole)) if whole.startswith(b"\x7fELF\x02\x01\x01", at)]
    assert images
    for image in images:
        (tmp_path / "image.so").write_bytes(image)
        listed = captured(["readelf", "-d", "image.so"], cwd=tmp_path).stdout
        assert "libc.so" in listed and "liboffpath" not in listed


def test_regions_of_a_tasks_function_run_on_a_device(tmp_path, monkeypatch):
    library = tmp_path / "libregion.so"
    source = PROGRAMS / "region_in_task.c"
    Builder(tmp_path).compile(["-fPIC", "-shared", source, f"-I{ROOT / 'include'}", "-o", library])
    (tmp_path / "run").mkdir(mode=0o700)
    for name, value in {**SHARED, "OFFPATH_RUNTIME_DIR": str(tmp_path / "run"), "OFFPATH_DEVICES": "local"}.items():
        monkeypatch.setenv(name, value)
    values, processes = np.arange(10.0), np.zeros(2, "i8")
    with offpath.attach(secrets.token_bytes(32), node_only=True) as session:
        for _ in range(2):
            task = session.task(
                f"{library}:scale", argument=np.float64(3).tobytes(), inouts=[values], outputs=[processes]
            )
            task.wait()
            assert processes[0] == task.outcome()["executor"] and processes[1] not in (0, processes[0], os.getpid())
    assert (values == 9 * np.arange(10.0)).all()
