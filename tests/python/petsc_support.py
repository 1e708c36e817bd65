# SPDX-License-Identifier: BSD-3-Clause
"""PETSc programs with liboffpath_petsc.so, and what they say."""

import json
import re

import pytest
import real_programs
from offpath.base.paths import paths
from offpath.launch.local import local_mpirun

LIMIT_S = 120  # for a hang, never reached otherwise
SHARED = {"OFFPATH_SERVICE_SHARE": "1"}
SOLVERS = {"offpath_pipecg": "pipecg", "offpath_cg": "cg"}
MONITOR = re.compile(r"^\s*(\d+) KSP (?:\w+ )*(?:Residual norm|resid norm) (\S+)", re.MULTILINE)


def plugin() -> list[str]:
    library = paths().lib / "liboffpath_petsc.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    return ["-dll_append", str(library)]


def run(ranks: int, argv: list[str], env: dict | None = None):
    return local_mpirun("openmpi", ranks, argv, env=SHARED | (env or {}), timeout=LIMIT_S)


def solve_program() -> str:
    return str(real_programs.need(paths().prefix / "tests" / "petsc" / "openmpi" / "solve"))


def residuals(result) -> list[float]:
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
    found = [float(norm) for _, norm in MONITOR.findall(result.stdout)]
    assert found, result.stdout
    return found


def results(result) -> list[tuple[int, str, float]]:
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
    lines = [line.split() for line in result.stdout.splitlines() if line.startswith("result ")]
    return [(int(iterations), reason, float(norm)) for _, iterations, reason, norm in lines]


def by_service(result) -> bool:
    return "vector updates and dot products: the service" in result.stdout


def assert_same_history(got: list[float], expected: list[float], rel: float = 1e-6) -> None:
    """Rounding differs, and iterations carry that on."""
    assert abs(len(got) - len(expected)) <= 1
    count = min(len(got), len(expected))
    assert got[:count] == pytest.approx(expected[:count], rel=rel, abs=1e-10 * expected[0])


def krylov_program() -> str:
    return str(real_programs.need(paths().prefix / "bench" / "openmpi" / "krylov"))


def solvers_of(result) -> list[dict]:
    """What the program krylov measured."""
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
    return json.loads(result.stdout[result.stdout.index('{"rows"') :])["solvers"]
