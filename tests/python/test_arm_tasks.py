# SPDX-License-Identifier: BSD-3-Clause
"""Tasks of programs of this machine on a DPU of another architecture: Arm, emulated (make aarch64)."""

import os
import re
import shutil
import subprocess
import sys
import textwrap

import openmp_support
import pytest
from bench_support import mpirun
from conftest import LIMIT_S, ROOT, captured, eventually, succeeded
from offpath.base.paths import paths
from openmp_support import PROGRAMS, TARGETS, Builder, requires
from test_task_requests import built  # noqa: F401

pytestmark = [pytest.mark.nightly, requires(openmp_support.missing_for("aarch64"))]
GUIDE = (ROOT / "docs" / "guide-tasks.md").read_text()
FUNCTIONS = paths().other_architecture("aarch64").parent / "lib" / "libapi_task_functions.so"


@pytest.fixture
def dpu(tmp_path):
    """Variables of programs whose service is on the DPU."""
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    yield {
        "OFFPATH_DPU": f"exec:{ROOT}/tests/api/aarch64.sh --for-agents --share",
        "OFFPATH_RUNTIME_DIR": str(run),
        "OFFPATH_SERVICE_SHARE": "1",
        "OFFPATH_TASK_CANCEL_MS": "50",
    }
    eventually(lambda: {file.name for file in run.iterdir()} <= {"lock"})  # services and agents leave nothing behind


def for_arm(library):
    """The place for an object of an Arm DPU that shares its files with this machine."""
    path = library.parent / "aarch64" / library.name
    path.parent.mkdir(exist_ok=True)
    return path


def test_the_guides_program_with_an_object_for_both(tmp_path, dpu):
    for name, text in re.findall(r"```c\n// (\S+)\n(.*?)```", GUIDE, re.DOTALL):
        (tmp_path / name).write_text(text)
    include, lib = f"-I{ROOT}/include", paths().lib
    subprocess.run(["cc", include, "-shared", "-fPIC", "-o", "libscale.so", "scale.c"], cwd=tmp_path, check=True)
    subprocess.run(
        ["cc", include, "-o", "main", "main.c", f"-L{lib}", f"-Wl,-rpath,{lib}", "-loffpath"], cwd=tmp_path, check=True
    )
    words = {"cwd": tmp_path, "env": os.environ | dpu, "capture_output": True, "text": True, "timeout": LIMIT_S}
    refused = subprocess.run(["./main"], **words)
    assert refused.returncode == 1 and refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert "it is built for x86_64, and the executor's machine is aarch64" in line and "aarch64/libscale.so" in line
    (command,) = re.findall(r"^    (aarch64-linux-gnu-gcc .*)$", GUIDE, re.MULTILINE)
    (tmp_path / "aarch64").mkdir()
    env = os.environ | {"PKG_CONFIG_PATH": str(lib / "pkgconfig")}
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, check=True)
    done = subprocess.run(["./main"], **words)
    assert done.returncode == 0 and done.stdout == "values[7] is 42\n", done.stderr


def test_functions_in_the_code_for_devices_of_a_program_of_this_machine(tmp_path, dpu):
    build, lib = Builder(tmp_path), paths().lib
    source = [PROGRAMS / "target_tasks.c", f"-I{ROOT}/include", f"-L{lib}", "-loffpath", f"-Wl,-rpath,{lib}"]
    build.compile([*source, "-o", "both"])
    build.compile([*source, "-o", "one"], targets=TARGETS["x86_64"])
    env = {**dpu, "OFFPATH_DEVICES": "none"}  # of its own; the service has executors
    done = openmp_support.run(tmp_path / "both", env=env)
    assert done.returncode == 0 and done.stdout == "all is right\n", (done.stdout, done.stderr)
    done = openmp_support.run(tmp_path / "one", env=env)
    assert done.returncode == 1
    assert "holds no code for devices of the executor's machine, which is aarch64" in done.stderr


PROGRAM = """
    import os, sys, secrets
    import numpy as np
    import offpath

    library = sys.argv[1]
    with offpath.attach(secrets.token_bytes(32), node_only=True) as session:
        def task(symbol, *arrays, argument=b""):
            return session.task(f"{library}:{symbol}", argument=argument, outputs=list(arrays))
        name = np.zeros(16, "u1")
        task("processor", name).wait()
        print(bytes(name).rstrip(bytes(1)).decode())
        for argument in (b"s", b"a", b"r"):
            failing = task("misbehave", argument=argument)
            try:
                failing.wait()
            except offpath.TaskError as error:
                print(failing.outcome()["signal"], error)
            task("processor", name).wait()
        try:
            task("nowhere")
        except offpath.ArgumentError as error:
            print(error)
"""


def test_crashes_have_last_words_and_missing_functions_a_line(tmp_path, built, dpu):  # noqa: F811
    library = tmp_path / "whose-name-is-so-long-that-lines-have-no-room-for-it" / "libfunctions.so"
    library.parent.mkdir()
    shutil.copy(built / "libfunctions.so", library)
    shutil.copy(FUNCTIONS, for_arm(library))
    variables = os.environ | dpu | {"PYTHONPATH": str(ROOT / "python"), "OFFPATH_TASK_EXECUTORS": "2"}
    done = succeeded(captured([sys.executable, "-c", textwrap.dedent(PROGRAM), library], env=variables))
    processor, segv, abort, returned, missing = done.stdout.splitlines()
    assert processor == "aarch64"
    assert re.search(r"^11 .*signal 11 \(Segmentation fault\) at address 0x10 in \S*aarch64/libfunctions.so\+0x", segv)
    assert re.search(r"^6 .*crashed with signal 6", abort)
    assert re.search(r"^0 .*returned 5: nobody is at home", returned)
    assert "libfunctions.so' exports no function 'nowhere'" in missing


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_requests_of_mpi(built, dpu, mpi, monkeypatch):  # noqa: F811
    """Two ranks of a DPU."""
    shutil.copy(FUNCTIONS, for_arm(built / "libfunctions.so"))
    for name, value in dpu.items():
        monkeypatch.setenv(name, value)
    result = mpirun(mpi, 2, built / f"requests_{mpi}", str(built / "libfunctions.so"))
    assert result.returncode == 0 and result.stdout == "OK\n", result.stdout + result.stderr
