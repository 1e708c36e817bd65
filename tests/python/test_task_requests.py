# SPDX-License-Identifier: BSD-3-Clause
"""Tasks as requests of MPI (include/offpath/mpi.h): both MPIs, natively and under the preloaded library."""

import os
import subprocess

import pytest
from bench_support import mpirun
from conftest import AS_ROOT, PROGRAMS, ROOT, offpath
from offpath.base.paths import paths


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("requests")
    library = paths().prefix / "lib"
    common = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]
    functions = ROOT / "tests" / "api" / "task_functions.c"
    subprocess.run(["cc", "-shared", "-fPIC", *common, functions, "-o", folder / "libfunctions.so"], check=True)
    for mpi in ("openmpi", "mpich"):
        link = [f"-L{library}", "-loffpath", f"-Wl,-rpath,{library}", "-o", folder / f"requests_{mpi}"]
        subprocess.run([f"mpicc.{mpi}", *common, PROGRAMS / "task_requests.c", *link], check=True)
    return folder


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("level", ["multiple", "single"])
def test_natively(built, mpi, level, monkeypatch):
    monkeypatch.setenv("OFFPATH_SERVICE_SHARE", "1")
    monkeypatch.setenv("OFFPATH_TASK_CANCEL_MS", "50")
    words = [] if level == "multiple" else [level]
    result = mpirun(mpi, 2, built / f"requests_{mpi}", str(built / "libfunctions.so"), *words)
    assert result.returncode == 0 and result.stdout == "OK\n", result.stdout + result.stderr


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_under_the_preloaded_library(built, mpi):
    env = {"OFFPATH_SERVICE_SHARE": "1", "OFFPATH_TASK_CANCEL_MS": "50"}
    env |= AS_ROOT
    more = ["--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else []
    words = [f"mpirun.{mpi}", "-np", "2", *more, str(built / f"requests_{mpi}"), str(built / "libfunctions.so")]
    result = offpath("run", "--", *words, env=os.environ | env)
    assert result.returncode == 0 and "OK\n" in result.stdout, result.stdout + result.stderr
