# SPDX-License-Identifier: BSD-3-Clause
"""MPI inside target regions when a process or an executor ends, or what the calls need is missing: never a hang."""

import os
import re
from pathlib import Path

import pytest
from conftest import eventually
from test_openmp import own_runtime_folder  # noqa: F401
from test_openmp_mpi import MPIS, SOURCES, compiled, needs_clang, start

pytestmark = needs_clang


@pytest.fixture(scope="module", params=MPIS)
def failing(request, tmp_path_factory):
    """The MPI, and the program built with it."""
    return request.param, compiled(tmp_path_factory.mktemp(request.param), request.param, SOURCES / "failing.c")


def assert_no_executor_left(output: str) -> None:
    """Neither the processes nor what their OpenMP library registers in /dev/shm."""
    executors = re.findall(r"^executor (\d+)$", output, re.MULTILINE)
    assert executors, output
    registered = [Path(f"/dev/shm/__KMP_REGISTERED_LIB_{process}_{os.getuid()}") for process in executors]
    left = [Path(f"/proc/{process}") for process in executors] + registered
    eventually(lambda: not any(path.exists() for path in left))


def test_a_rank_that_dies_while_its_region_is_in_a_call(failing):
    mpi, program = failing
    result = start(mpi, 2, [program, "process"])
    assert result.returncode != 0 and "went on" not in result.stdout, result.stdout + result.stderr
    assert_no_executor_left(result.stdout)


def test_an_executor_that_is_killed_in_a_call(failing):
    mpi, program = failing
    result = start(mpi, 2, [program, "executor"])
    assert result.returncode != 0 and "went on" not in result.stdout, result.stdout + result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("offpath: device 0")]
    assert len(lines) >= 1 and all("killed" in line or "closed" in line for line in lines), result.stderr
    assert_no_executor_left(result.stdout)


def test_a_program_that_asks_for_no_thread_level_is_served(failing):
    mpi, program = failing
    result = start(mpi, 2, [program, "plain"])
    assert result.returncode == 0 and result.stdout.count("class 0, sum 3") == 2, result.stdout + result.stderr


def test_a_program_without_the_interposer_is_told(failing):
    """The calls return an error class, and one line of each rank says why."""
    mpi, program = failing
    result = start(mpi, 2, [program, "plain"], preload=False)
    assert result.returncode != 0 and "class 0" not in result.stdout, result.stdout + result.stderr
    assert len(re.findall(r"^rank \d: class [1-9]\d*,", result.stdout, re.MULTILINE)) >= 1, result.stdout
    said = [line for line in result.stderr.splitlines() if line.startswith("offpath")]
    assert 1 <= len(said) <= 2 and all("MPI" in line for line in said), result.stderr
