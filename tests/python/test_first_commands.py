# SPDX-License-Identifier: BSD-3-Clause
"""The first commands of every guide run as they are written, in the source tree and from an installation."""

import os
import re
import shutil
import subprocess
import sys
import uuid

import openmp_support
import pytest
from conftest import LIMIT_S, ROOT, captured, offpath, requires_root
from guide_support import GUIDES, Place, blocks, missing_for

# Of these all commands are run by a test that brings up what they need.
ELSEWHERE = {
    "guide-lab": "test_docs.py", "guide-start": "test_docs.py", "guide-planner": "test_plan.py",
    "guide-openmp": "test_openmp_guide.py", "guide-slurm": "test_slurm.py", "guide-dpu": "test_lab_dpus.py",
    "guide-torch": "test_lab_torch.py", "guide-administration": "test_service_command.py",
}  # fmt: skip
OF_THE_READER = {"guide-petsc": ("petsc_support.py", "-dll_append")}  # a program that is not ours
# What takes minutes and has tests of its own; what has been done where this runs.
LEFT_OUT = re.compile(r"^(\S*offpath (bench|calibrate)|make|pip install) ")
NAMES = [guide.stem for guide in GUIDES if guide.stem not in ELSEWHERE | OF_THE_READER]


def first(text: str) -> list[str]:
    for lines in blocks(text):
        if kept := [line for line in lines if not LEFT_OUT.match(line)]:
            return kept
    return []


def check(name: str, place: Place, folder) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text()
    lines = first(text)
    if not lines:
        return
    if missing := missing_for(lines):
        pytest.skip(missing)
    done = place.run(text, lines, folder)
    assert done.returncode == 0, (lines, done.stdout, done.stderr)
    for line in lines:  # one job each: another MPI's mpirun would start as many alone
        if "offpath run" in line and (count := re.search(r" -np (\d+) ", line)):
            assert re.search(rf"{count[1]} \w+ on 1 node", done.stdout + done.stderr), (line, done.stderr)


@pytest.mark.parametrize("name", NAMES)
def test_in_the_source_tree(name, tmp_path):
    check(name, Place(), tmp_path)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed") / "offpath"
    subprocess.run(["cmake", "--install", ROOT / "build" / "release", "--prefix", prefix], check=True, timeout=900)
    command = [ROOT / "tools" / "wheel", "--as-built", prefix.parent]
    made = captured(command, check=True)
    python = prefix.parent / "python" / "bin"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", python.parent], check=True)
    pip = [sys.executable, "-m", "pip", "--python", python / "python", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, made.stdout.split()[-1]], check=True, timeout=LIMIT_S)
    [site] = python.parent.glob("lib/python*/site-packages")
    import numpy

    (site / "numpy.pth").write_text(os.path.dirname(os.path.dirname(numpy.__file__)))
    return Place(prefix, python)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_from_an_installation(name, installed, tmp_path):
    check(name, installed, tmp_path)


LAB = f"t{uuid.uuid4().hex[:6]}"
# In the tree tests of their own run them. What is changed: a lab of our own, programs of tests, what takes minutes.
CHANGED = {
    "guide-start": [],
    "guide-lab": [(r"(lab (?:up|run)) ", rf"\1 --name {LAB} "), (r"(lab (?:status|down))", rf"\1 {LAB}"),
                  (r"--mpi (\w+)(.*) \./my_mpi_program", r"--mpi \1\2 ./hello_\1")],
    "guide-planner": [("calibrate", "calibrate --loopback --repeats 3")],
    "guide-openmp": [],
}  # fmt: skip


@requires_root
@pytest.mark.nightly
@pytest.mark.parametrize("name", CHANGED)
def test_others_from_an_installation(name, installed, programs, tmp_path):
    text = (ROOT / "docs" / f"{name}.md").read_text()
    lines = blocks(text)[0]
    if missing := missing_for(lines) or (openmp_support.missing_for("aarch64") if name == "guide-openmp" else None):
        pytest.skip(missing)
    for old, new in CHANGED[name]:
        lines = [re.sub(old, new, line) for line in lines]
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    shutil.copy(openmp_support.PROGRAMS / "hello.c", tmp_path / "app.c")
    for program in programs.glob("hello_*"):
        shutil.copy(program, tmp_path)
    try:
        done = installed.run(text, lines, tmp_path)
        assert done.returncode == 0, (lines, done.stdout, done.stderr)
    finally:
        if name == "guide-lab":
            offpath("lab", "down", LAB)


@pytest.mark.nightly
def test_administrators_find_what_their_guide_names(installed):
    """An installation over another replaces files: programs that have the old ones open go on with them."""
    prefix = installed.prefix
    guide = (ROOT / "docs/guide-administration.md").read_text()
    rows = re.search(r"under the prefix.*?\n\n", guide, re.DOTALL)[0].strip()
    named = [path for row in rows.splitlines()[2:] for path in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(named) > 6 and [path for path in named if not (prefix / path).exists()] == []
    library = next((prefix / "lib").glob("liboffpath.so.*.*"))
    os.utime(library, (1, 1))  # as of another release: what is the same is left alone
    with library.open("rb") as kept:
        subprocess.run(["cmake", "--install", ROOT / "build" / "release", "--prefix", prefix], check=True, timeout=900)
        assert os.fstat(kept.fileno()).st_ino != library.stat().st_ino


@pytest.mark.nightly
def test_administrators_try_what_they_have_installed(installed, tmp_path):
    text = (ROOT / "docs/guide-administration.md").read_text()
    lines = next(lines for lines in blocks(text) if lines[0].startswith("offpath selftest"))
    done = installed.run(text, lines, tmp_path)
    assert done.returncode == 0 and "offpath: it works" in done.stderr, (lines, done.stdout, done.stderr)


def test_administrators_are_told_the_ports_and_limits_that_are():
    text = (ROOT / "docs/guide-administration.md").read_text()
    source = (ROOT / "src/fabric/multicast/socket.cpp").read_text()
    port, mask = re.search(r"htons\(static_cast<uint16_t>\((\d+) \+ .*& (0x\w+)\)", source).groups()
    assert f"UDP {port} to {int(port) + int(mask, 16)}" in text
    most = re.search(r"max_clients = (\d+)", (ROOT / "src/service/device_service.hpp").read_text())[1]
    assert f"`offpathd --max-clients`, {most} by default" in text
    options = set(re.findall(r"`offpathd[^`]*? (--[\w-]+)", text))
    known = (ROOT / "src/service/command_line.cpp").read_text()
    assert len(options) > 2 and [name for name in options if f'"{name}"' not in known] == []


def test_every_other_guide_has_its_test():
    assert set(ELSEWHERE) < {guide.stem for guide in GUIDES}
    for guide, test in ELSEWHERE.items():
        assert f"{guide}.md" in (ROOT / "tests" / "python" / test).read_text(), guide
    for test, words in OF_THE_READER.values():
        assert words in (ROOT / "tests" / "python" / test).read_text()
