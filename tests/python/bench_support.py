# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of fft3d, bench and demo: the built programs, started natively."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import captured, require
from offpath.base.paths import paths
from offpath.launch.local import native_environment
from offpath.launch.mpis import MPICH, OPENMPI, launcher


def program(kind: str, mpi: str, name: str) -> Path:
    """A program of apps/ or bench/ in the build tree; the test is skipped where it is not built."""
    path = getattr(paths(), kind) / mpi / name
    require(path)
    return path


def mpirun(mpi: str, np: int, path: Path, *arguments: str) -> subprocess.CompletedProcess:
    crowded = np > len(os.sched_getaffinity(0))
    command = [launcher(mpi), "-np", str(np)]
    env = os.environ | native_environment(mpi, crowded)
    if mpi == "openmpi":
        command += ["--oversubscribe", "--bind-to", "none"]
    elif crowded and paths().yield_library.exists():
        command += ["-genv", "LD_PRELOAD", str(paths().yield_library)]
    return captured([*command, path, *arguments], env=env)


def stand_in_prefix(folder: Path) -> Path:
    """A prefix with the real programs and a preload library that does nothing: what the drivers do is then the same
    whether offloading pays on this machine or not."""
    (folder / "lib").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "offpath-policy").symlink_to(paths().policy_program)
    for kind in ("apps", "bench"):
        (folder / kind).symlink_to(getattr(paths(), kind))
    if paths().yield_library.exists():
        (folder / "lib" / paths().yield_library.name).symlink_to(paths().yield_library)
    for mpi in (OPENMPI, MPICH):
        if paths().backend_library(mpi).exists():
            (folder / "lib" / paths().backend_library(mpi).name).touch()  # says that there is one: nobody loads it
    library = folder / "lib" / "liboffpath_mpi.so"
    source = "int offpath_stand_in;\n"
    subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", library], input=source, text=True, check=True)
    return folder


def prefix_with(kind: str, name: str):
    """A fixture: the environment in which the command line uses such a prefix, where that program is built."""

    @pytest.fixture(scope="module")
    def prefix(tmp_path_factory):
        program(kind, "mpich", name)
        return {"OFFPATH_PREFIX": str(stand_in_prefix(tmp_path_factory.mktemp(name) / "prefix"))}

    return prefix


def assert_checks(written: dict, result: subprocess.CompletedProcess, names: list[str]) -> None:
    """What --json says of the goals, and the closing line. Not whether they are met."""
    assert [each["name"] for each in written["checks"]] == names
    for each in written["checks"]:
        assert list(each) == ["name", "value", "goal", "met", "unjudged"]
        assert each["value"] >= 0 and (each["met"] is None) == (each["unjudged"] is not None)
    met = sum(each["met"] is True for each in written["checks"])
    assert result.stdout.splitlines()[-1].startswith(f"checks: {met} of {len(names)} met")


def assert_self_contained(html: str) -> None:
    assert len(html) < 200_000
    for outside in ("http:", "https:", "src=", "@import", "<script"):
        assert outside not in html, outside
    assert not re.search(r"""href=(?!"#)|url\((?!#)""", html)  # but for parts of a chart
    assert html.startswith("<!doctype html>")
    assert "<svg" in html and "prefers-color-scheme:dark" in html
