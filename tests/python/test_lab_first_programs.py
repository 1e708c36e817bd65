# SPDX-License-Identifier: BSD-3-Clause
"""Six programs that one writes first: their closing lines are those that docs/design/0052-first-hour.md shows."""

import re
import subprocess

import pytest
from conftest import LIMIT_S, PROGRAMS, ROOT, require, requires_root, succeeded
from offpath.base.paths import paths
from offpath.launch import mpis
from offpath.launch.closing_line import closing_line

pytestmark = requires_root
NOTE = ROOT / "docs" / "design" / "0052-first-hour.md"
ARGUMENTS = {
    "all-to-all, pipelined": ["pipeline"], "halo, 512 KiB": ["halo", "524288"], "halo, 8 KiB": ["halo", "8192"],
    "farm by fetch-and-op": ["farm"], "pipelined CG": ["cg"], "training, mpi4py": [],
}  # fmt: skip
SYSTEMS = "/usr/bin/python3"  # which has Debian's mpi4py, made for Open MPI
# Which way one-sided operations go depends on who is in time; that they went, and how many there are in all, does not.
NATIVELY = r"(, \d+ native \(\d+ faster so, as measured\))?"
WHICH_WAY = rf"^(\d+ one-sided operations), \d+ offloaded( \([^()]*\))?{NATIVELY}"
GAIN = r" Up to .* can be gained.*"  # where the machine has no time for them
MEMORY = r"[\d.]+ [KM]?i?B (?=used in place|copied|of staging memory)"


def shown() -> dict[str, str]:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", NOTE.read_text(), re.MULTILINE)
    return {name: line for name, line in rows if name in ARGUMENTS}


def what_counts(line: str) -> str:
    return re.sub(MEMORY, "some ", re.sub(WHICH_WAY, r"\1", re.sub(GAIN, "", line)))


def test_the_note_shows_all_of_them():
    assert shown().keys() == ARGUMENTS.keys()


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("mpi", (mpis.OPENMPI, mpis.MPICH))
def test_what_the_closing_line_says(mpi, name, lab, tmp_path):
    require(paths().lib / f"liboffpath_mpi_{mpi}.so")
    command = [str(tmp_path / "program"), *ARGUMENTS[name]]
    if ARGUMENTS[name]:
        source = PROGRAMS / "first_programs.c"
        subprocess.run([f"mpicc.{mpi}", "-O1", source, "-o", command[0], "-lm"], check=True)
    else:
        if mpi != mpis.OPENMPI or subprocess.run([SYSTEMS, "-c", "import mpi4py, numpy"]).returncode != 0:
            pytest.skip("Debian has mpi4py for Open MPI (python3-mpi4py)")
        command = [SYSTEMS, str(PROGRAMS / "first_training.py")]
    result = succeeded(lab.mpirun(mpi, 1, command, offload=True, timeout=LIMIT_S))
    who, said = closing_line(result.stats, mpi).split(": ", 1)
    assert who == f"2 ranks on 2 nodes ({mpis.TITLES[mpi]})"
    assert what_counts(said) == what_counts(shown()[name]), said


def test_what_can_be_gained_is_said_and_can_be_gained(lab, tmp_path):
    """By a program that waits at once for what it has just started. Then the same that computes meanwhile."""
    program = tmp_path / "program"
    subprocess.run(["mpicc.openmpi", "-O1", PROGRAMS / "first_programs.c", "-o", program, "-lm"], check=True)
    for _ in range(3):  # other load of the machine takes time, too
        late, early = (
            lab.mpirun(mpis.OPENMPI, 1, [str(program), when], offload=True, timeout=LIMIT_S)
            for when in ("late", "early")
        )
        assert late.returncode == early.returncode == 0, late.stderr + early.stderr
        line = closing_line(late.stats, mpis.OPENMPI)
        said = re.search(r"Up to ([\d.]+) s of [\d.]+ s can be gained, as ranks waited for 320 messages: ", line)
        taken = [max(rank["run_ns"] for rank in result.stats) / 1e9 for result in (late, early)]
        if said and taken[0] - taken[1] > float(said[1]) / 2:
            return
    pytest.fail(f"{line} {taken}")
