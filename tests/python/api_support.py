# SPDX-License-Identifier: BSD-3-Clause
"""Programs that use the Python interface, and the environment in which their service runs."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import AS_ROOT, LIMIT_S, PROGRAMS, ROOT, require

LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpirun.mpich"]}


def require_library():
    from offpath.base.paths import paths

    require(paths().lib / "liboffpath.so.0", paths().service)


def require_executors():
    from offpath.base.paths import paths

    needed = (paths().prefix / "bin" / "offpath-executor", paths().lib / "liboffpath_python.so")
    if not all(file.exists() for file in needed):
        pytest.skip("not built")


@pytest.fixture(scope="module")
def environment():
    """For programs whose services share the cores; their runtime folder goes in the end."""
    require_library()
    folder = Path(tempfile.mkdtemp(prefix="offpath-py-"))
    yield os.environ | {
        "OFFPATH_SERVICE_SHARE": "1",
        "OFFPATH_RUNTIME_DIR": str(folder),
        "OFFPATH_INIT_TIMEOUT_S": "60",
        **AS_ROOT,
        "PYTHONPATH": str(ROOT / "python"),
    }
    left = [file.name for file in folder.iterdir() if file.name != "lock"]
    shutil.rmtree(folder)
    assert not left, "services or meetings left something behind"


def finish(process: subprocess.Popen) -> tuple[str, str]:
    """What it wrote; it is ended when it takes too long."""
    try:
        return process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def start(environ: dict, *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *words], env=environ, cwd=PROGRAMS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ranks(environ: dict, size: int, *words: str, **more: str) -> list[subprocess.Popen]:
    """As torchrun would start them."""
    torch = {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    return [start(environ | torch | {"RANK": str(rank)} | more, *words) for rank in range(size)]
