# SPDX-License-Identifier: BSD-3-Clause
"""Other people's programs for test_real_programs.py: where they are, how they are built and started."""

import subprocess
from pathlib import Path

import pytest
from conftest import captured

ROOT = Path(__file__).resolve().parents[2]
FETCHED = ROOT / "build" / "real-programs"
PETSC_EXAMPLES = Path("/usr/share/petsc/3.18/share/petsc/examples/src/ksp/ksp/tutorials")
SCALAPACK_TESTS = Path("/usr/lib/x86_64-linux-gnu/scalapack")
HPCC_INPUT = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")


def need(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"{path} is not there (make setup installs it)")
    return path


def in_folder(folder: Path, program: Path, *arguments: str) -> list[str]:
    """`program`, started in the folder where its input is."""
    return ["sh", "-c", 'cd "$0" && exec "$@"', str(folder), str(program), *arguments]


def petsc(folder: Path, name: str) -> str:
    """An example of Debian's PETSc, built with Open MPI like that."""
    source = need(PETSC_EXAMPLES / name)
    compiler = ["mpif90.openmpi", "-ffree-line-length-none"] if source.suffix == ".F90" else ["mpicc.openmpi", "-O1"]
    flags = captured(["pkg-config", "--cflags", "--libs", "petsc"], check=True)
    program = folder / source.stem
    command = [*compiler, "-w", str(source), *flags.stdout.split(), "-lm", "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    return str(program)


def scalapack(folder: Path, mpi: str, name: str) -> list[str]:
    """A test of ScaLAPACK; the sizes of its matrices are in files next to it."""
    program = need(SCALAPACK_TESTS / f"{mpi}-tests" / name)
    return in_folder(program.parent, program)


def hpcc(folder: Path) -> list[str]:
    """HPC Challenge on matrices of 400 x 400. Its results are in folder/hpccoutf.txt."""
    text = need(HPCC_INPUT).read_text().replace("1000         Ns", "400          Ns")
    (folder / "hpccinf.txt").write_text(text)
    return in_folder(folder, need(Path("/usr/bin/hpcc")))


def mpi4py(mpi: str) -> tuple[Path, dict[str, str]]:
    """The folder of mpi4py's tests, and the environment in which Python finds the module built for `mpi`."""
    result = captured([ROOT / "tools" / "setup", "--programs"], timeout=None)
    if result.returncode != 0:
        pytest.skip(f"mpi4py could not be fetched: {result.stderr.strip()[-200:]}")
    return FETCHED / "mpi4py" / "test", {} if mpi == "openmpi" else {"PYTHONPATH": str(FETCHED / "mpich")}
