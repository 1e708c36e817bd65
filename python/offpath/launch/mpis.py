# SPDX-License-Identifier: BSD-3-Clause
"""The MPIs of this machine: which are installed, which one a program was built with."""

from __future__ import annotations

import contextlib
import functools
import mmap
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath.base import processes
from offpath.base.errors import UserError

OPENMPI = "openmpi"
MPICH = "mpich"
OPENSHMEM = "openshmem"  # of Open MPI: its launcher takes the same options
SLURM = "slurm"
TITLES = {OPENMPI: "Open MPI", MPICH: "MPICH", OPENSHMEM: "OpenSHMEM", SLURM: "Slurm"}

STANDARD_ABI = "libmpi_abi.so"
NO_MAKER = "the loader finds none, or one that is of no MPI known here"
# What only the libraries themselves say, stripped ones too; what a program says that needs one as a shared library.
INSIDE, NEEDED = (b"MPIR_CVAR_ABORT_ON_LEAKED_HANDLES", b"ompi_mpi_init: "), b"\0libmpi"
LAUNCHER_NAMES = re.compile(r"^(mpirun|mpiexec|orterun|prterun|oshrun|shmemrun)([.\-_].+)?$")


@dataclass(frozen=True)
class InstalledMpi:
    kind: str
    launcher: str
    version: str


@functools.cache
def launcher_kind(program: str) -> str | None:
    """OPENMPI, MPICH or SLURM when `program` starts parallel programs; None when it is an ordinary program."""
    name = Path(program).name
    if name == "srun":
        return SLURM
    if not LAUNCHER_NAMES.match(name):
        return None
    return _kind_of_banner(_version_banner(program))


def refuse_submission(program: str) -> None:
    """Raises UserError for a program that only puts a job into a queue."""
    if Path(program).name == "sbatch":
        raise UserError(
            "sbatch only submits its script (the ranks run later, somewhere else). Put `offpath run --` into the "
            "script, in front of its srun or mpirun."
        )


def starts_openshmem(program: str) -> bool:
    return Path(program).name in ("oshrun", "shmemrun")


@functools.cache
def launcher(kind: str) -> str:
    """The mpirun of `kind`. Raises UserError when that MPI is not installed."""
    if kind not in (OPENMPI, MPICH, OPENSHMEM):
        raise UserError(f"'{kind}' is not an MPI known here. Use openmpi, mpich or openshmem.")
    names = ("oshrun", "shmemrun") if kind == OPENSHMEM else (f"mpirun.{kind}", "mpirun", "mpiexec")
    for name in names:
        path = shutil.which(name)
        if path and launcher_kind(path) == (OPENMPI if kind == OPENSHMEM else kind):
            return path
    raise UserError(f"{TITLES[kind]} is not installed (no mpirun of it in PATH). Run: make setup")


def installed() -> list[InstalledMpi]:
    found = []
    for kind in (OPENMPI, MPICH):
        try:
            path = launcher(kind)
        except UserError:
            continue
        version = re.search(r"\d+\.\d+(\.\d+)?", _version_banner(path))
        found.append(InstalledMpi(kind, path, version.group() if version else "unknown"))
    return found


def mpi_of_program(program: str) -> str | None:
    """The MPI that the executable `program` is linked with; None for a script or a program without MPI, and where a
    library with the standard's ABI is needed and not found, or of another MPI."""
    libraries = _libraries_of(program)
    standard = re.search(rf"{STANDARD_ABI}\S* => (/\S+)", libraries)
    if standard:
        return _maker_of(Path(standard.group(1)))
    if re.search(r"liboshmem\.so", libraries):
        return OPENSHMEM
    if re.search(r"libmpich\.so|libmpi\.so\.12\b", libraries):
        return MPICH
    if re.search(r"libmpi\.so", libraries):
        return OPENMPI
    return None


def of_command(argv: Sequence[str]) -> str | None:
    """The MPI of the ranks that a command line starts: the launcher's, or that of the first program in it that is
    linked with one; None where only a script is named."""
    kind = launcher_kind(argv[0])
    if kind in (OPENMPI, MPICH):
        return kind
    return next((found for program in _programs(argv[1 if kind else 0 :]) if (found := mpi_of_program(program))), None)


def statically_linked(argv: Sequence[str]) -> str | None:
    """The first program of a command line that has an MPI linked into itself: nothing comes in front of that one's
    functions."""
    return next((program for program in _programs(argv) if _has_mpi_inside(Path(program))), None)


def _programs(words: Sequence[str]) -> Iterator[str]:
    return filter(None, (shutil.which(word) for word in words if not word.startswith("-")))


def uses_standard_abi(program: str) -> bool:
    """Linked with the MPI standard's own ABI: any MPI may stand behind it."""
    return STANDARD_ABI in _libraries_of(program)


@functools.cache
def _maker_of(library: Path) -> str | None:
    """Whose library with the standard's ABI it is, by what is inside."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        makers = {b"MPIR_Err_create_code": MPICH, b"ompi_mpi_comm_world": OPENMPI}
        return next((kind for symbol, kind in makers.items() if content.find(symbol) >= 0), None)


def _has_mpi_inside(program: Path) -> bool:
    with contextlib.suppress(OSError, ValueError), program.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(NEEDED) < 0 and any(content.find(text) >= 0 for text in INSIDE)
    return False


def _libraries_of(program: str) -> str:
    return subprocess.run(["ldd", program], capture_output=True, text=True).stdout


def executable(program: str) -> str:
    """Full path of `program`. Raises UserError when there is none."""
    path = shutil.which(program)
    if path is None:
        raise processes.no_program(program, Path(program).exists())
    return path


def program_mpi_or_default(argv: Sequence[str]) -> str:
    """The MPI to start `argv` with: the one it is linked with, else the first one installed."""
    program = executable(argv[0])
    kind = mpi_of_program(program)
    if kind:
        return kind
    if uses_standard_abi(program):
        raise UserError(
            f"{argv[0]} needs {STANDARD_ABI}, and {NO_MAKER} (so it is not known what starts it). "
            "Set LD_LIBRARY_PATH to the folder of your MPI's, or say with --mpi which one starts it."
        )
    choices = installed()
    if not choices:
        raise UserError("No MPI is installed (nothing can start the program). Run: make setup")
    return choices[0].kind


def _kind_of_banner(banner: str) -> str | None:
    if re.search(r"Open MPI|OpenRTE|PRRTE", banner):
        return OPENMPI
    if re.search(r"HYDRA|Hydra|MPICH|Intel\(R\) MPI", banner):
        return MPICH
    return None


@functools.cache
def _version_banner(program: str) -> str:
    try:
        command = [program, "--version"]  # a script of that name may read what the program is to read
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
