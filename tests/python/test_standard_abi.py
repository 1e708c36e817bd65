# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the MPI standard's own ABI, on MPICH 5 of PyPI: the cases of tests/interpose and tests/conformance."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conformance_support import EVERYTHING, FULL
from conftest import ROOT, captured, require, succeeded
from offpath.base.paths import paths
from offpath.launch import stats

LIBRARY = ROOT / ".venv" / "mpich_abi"
COMPILER = LIBRARY / "bin" / "mpicc_abi"
INTERPOSE, CONFORMANCE = ROOT / "tests" / "interpose" / "programs", ROOT / "tests" / "conformance"
LIMIT_S = 3600  # for a hang
SHORT = (
    "aliases exchange types forms_nonblocking forms_persistent forms_blocking rma rma_errors messages_calls "
    "messages_large files messages_errors_survived"
)
# Not "accepted": this library refuses operators on characters, and ends the program at the next one. Not
# "messages_random" and "messages_queued": natively it gets statuses of persistent requests wrong, and does not end with
# freed sends under way. It has no Fortran.
LONG = (
    "lengths completion request_free progress threads arguments neighbors pairs persistent thread_level "
    "rma_ways rma_atomics rma_types rma_threads rma_info rma_lost files_end files_policy files_full files_lost "
    "adapt_modes adapt_preferences adapt_freed adapt_orders adapt_threads adapt_ahead adapt_burst adapt_named "
    "trace_nonblocking trace_persistent trace_blocking trace_starts trace_windows trace_off trace_sample "
    "at_exit rests messages messages_left messages_probed messages_synchronous messages_overlap "
    "messages_lost messages_lost_kinds messages_lost_held messages_lost_threads messages_lost_apart "
    "messages_held_apart mapped lent lost_blocked lost_unused lost_again lost_again_asking lost_silent "
    "lost_idle windows_lost restarted restarted_messages restarted_ends restarted_unused"
)

pytestmark = pytest.mark.skipif(not COMPILER.exists(), reason="tools/setup could not get PyPI's mpich")


def compile_program(sources: list[Path], name: Path) -> None:
    known = [f"-DOFFPATH_MPI_HAS_{name}" for name in ("LARGE_COUNTS", "REQUEST_STATUSES")]
    options = ["-w", "-O1", "-pthread", "-fopenmp", *known]
    folders = [f"-I{ROOT / name}" for name in ("frontends", "include")]
    succeeded(captured([COMPILER, *options, *folders, *sources, "-o", name, "-lm"]))


@pytest.fixture(scope="module")
def programs() -> Path:
    """The build, which has the cases' programs for this library, too."""
    folder = paths().prefix / "tests" / "interpose" / "mpich_abi"
    require(paths().prefix / "lib" / "liboffpath_mpi_abi.so")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sources = [source for source in INTERPOSE.glob("*.c") if "int main(" in source.read_text() and source.stem != "abi"]
    if not FULL:
        wanted = {re.sub(r"(?<=^forms)_.*|_survived$", "", case) for case in SHORT.split()}
        sources = [source for source in sources if source.stem in wanted]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda source: compile_program([source], folder / source.stem), sources))
    return paths().prefix


def driven(programs: Path, cases: str) -> None:
    command = [
        sys.executable,
        ROOT / "tests/interpose/driver.py",
        "--build",
        programs,
        "--mpi",
        "mpich_abi",
        "--kind",
        "real",
    ]
    done = captured([*command, *cases.split()], timeout=LIMIT_S)
    wrong = [line for line in done.stdout.splitlines() if re.match(r"\w+: (WRONG|skipped)", line)]
    assert done.returncode == 0 and not wrong, done.stdout + done.stderr


@pytest.mark.machine
def test_calls_collectives_windows_messages_and_files(programs):
    driven(programs, SHORT)


@pytest.mark.machine
@pytest.mark.skipif(not FULL, reason="make nightly")
def test_everything_that_the_library_can_do_natively(programs):
    driven(programs, LONG)


@pytest.fixture(scope="module")
def conformance(programs, tmp_path_factory):
    """The lines that the program prints with these arguments, natively and offloaded, side by side."""
    folder = tmp_path_factory.mktemp("conformance")
    compile_program(list(CONFORMANCE.glob("*.c")), folder / "conformance")
    statistics = folder / "stats.jsonl"
    around = [ROOT / "offpath", "run", "--share", "--stats", statistics, "--"]

    def compared(*arguments):
        command = [LIBRARY / "bin" / "mpirun", "-np", "4", folder / "conformance", *arguments]
        env = os.environ | EVERYTHING | {"OFFPATH_MPI_BLOCKING": "all"}
        runs = [
            captured(argv, timeout=LIMIT_S, env=env)
            for argv in (command, [*around, *command])
        ]
        assert all(rank["offloaded_count"] > 0 for rank in stats.read(str(statistics))), runs[1].stderr
        return list(zip(*(run.stdout.splitlines() for run in runs), strict=True))

    return compared


@pytest.mark.machine
def test_communicators_of_every_kind(conformance):
    """This library's group of a Cartesian one has ranks that were left out, too; what was made with it stood still."""
    lines = conformance("--match", "Iallgather")
    assert len(lines) > 20 and [pair for pair in lines if pair[0] != pair[1]] == []


@pytest.mark.machine
@pytest.mark.skipif(not FULL, reason="make nightly")
@pytest.mark.parametrize("form", ["nonblocking", "persistent", "blocking"])
def test_every_collective_and_type(conformance, form):
    """MPICH 5 sends to a neighbor on both sides in another order than 4.0, by which the program goes: it says itself
    that the native results are wrong, and its counts do not fit then."""
    expected = [pair for pair in conformance("--form", form, "--every", "31") if "eighbor_alltoall" not in pair[0]]
    assert len(expected) > 1000 and not any(one.endswith(" WRONG") for one, _ in expected)
    assert [pair for pair in expected if pair[0] != pair[1]] == []


# ---- our header and the library's


def told(lines: list[str], folder: Path) -> list[list[str]]:
    """What a program says that is compiled with each of the two."""
    source, program = folder / "tell.cpp", folder / "tell"
    text = "\n".join(lines)
    source.write_text(f"#include <mpi.h>\n#include <cstdio>\n#include <typeinfo>\nint main() {{\n{text}\n}}\n")
    said = []
    for options in ([f"-I{ROOT}/frontends/mpi/abi", f"-I{ROOT}/frontends"], [f"-I{LIBRARY}/include", "-DMPI_ABI"]):
        subprocess.run(["g++", "-w", *options, source, "-o", program], check=True)
        said.append(captured([program], check=True).stdout.splitlines())
    return said


def test_the_functions_are_those_of_the_library(tmp_path):
    header = ROOT / "frontends" / "mpi" / "abi" / "mpi.h"
    text = captured(["gcc", "-E", "-P", f"-I{ROOT}/frontends", header], check=True).stdout
    names = sorted(set(re.findall(r"\bint (MPI_\w+)\(", text)))
    ours, theirs = told([f'printf("%s %s\\n", "{name}", typeid({name}).name());' for name in names], tmp_path)
    assert len(ours) > 300 and ours == theirs


def test_the_constants_are_those_of_the_library(tmp_path):
    text = (ROOT / "frontends" / "mpi" / "abi" / "constants.h").read_text()
    names = re.findall(r"^#define (MPI_\w+)", text, re.M)
    values = [*names, *(f"sizeof(MPI_{name})" for name in ("Status", "Aint", "Offset", "Count"))]
    ours, theirs = told([f'printf("%s %lld\\n", "{value}", (long long)({value}));' for value in values], tmp_path)
    assert len(ours) > 200 and ours == theirs
