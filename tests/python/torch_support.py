# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of PyTorch programs, started as torchrun does it, by an interpreter that has PyTorch."""

import os
import socket
import subprocess
from functools import cache
from pathlib import Path

import foreign_support
import pytest
from conftest import LIMIT_S, PROGRAMS, ROOT
from offpath.base.errors import UserError
from offpath.bench.suite import training


@cache
def interpreter() -> str:
    """OFFPATH_TEST_TORCH names another one, with a PyTorch of its own."""
    if given := os.environ.get("OFFPATH_TEST_TORCH"):
        return given
    try:
        return training.interpreter()
    except UserError as error:
        pytest.skip(str(error))


@cache
def sharding_interpreter() -> str:
    """One whose PyTorch has fully_shard on CPUs."""
    given = os.environ.get("OFFPATH_TEST_TORCH")
    return given or str(foreign_support.set_up() / "torch" / "bin" / "python")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment() -> dict:
    """Of programs that share this machine's cores with their service."""
    return os.environ | {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "OFFPATH_SERVICE_SHARE": "1"}


def other_torch(folder: Path, there: str) -> Path:
    """An interpreter that says to have another PyTorch, or none."""
    first = "import torch; torch.__version__ = '0.4.1'" if there == "another torch" else "sys.modules['torch'] = None"
    (folder / "sitecustomize.py").write_text(f"import sys\n{first}\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {interpreter()} "$@"\n')
    python.chmod(0o755)
    return python


def run_ranks(program: str, count: int, *arguments: str, env: dict | None = None, python: str = "") -> list[str]:
    """What each printed. Raises when one fails. python: the interpreter, else that of PyTorch."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count)}
    common = environment() | meeting
    ranks = [
        subprocess.Popen(
            [python or interpreter(), PROGRAMS / program, *arguments],
            env=common | (env or {}) | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        said = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert all(rank.returncode == 0 for rank in ranks), "\n".join(said)
    return said
