# SPDX-License-Identifier: BSD-3-Clause
"""MPI inside target regions. The sides: both sides of each rank in one process, the region's code compiled against the
device library and the executor a stand-in. The programs: real regions in a real executor, compiled by clang."""

import os
import random
import shutil
import subprocess

import pytest
from conftest import LIMIT_S, MPIS, ROOT, captured, requires_root, succeeded
from offpath.base.paths import paths
from offpath.lab import Lab
from offpath.launch.local import native_environment
from offpath.launch.mpis import launcher

NATIVE = {"OFFPATH_POLICY": "ialltoall:0-inf:host"}
CLANG = shutil.which("clang-14")
SOURCES = ROOT / "tests" / "openmp_mpi" / "programs"
needs_clang = pytest.mark.skipif(
    CLANG is None or not (paths().lib / "libomptarget.rtl.x86_64.so").exists(),
    reason="clang-14 or the target plugin is missing",
)


def start(mpi, np, argv, env=None, preload=True):
    """Runs `argv` under mpirun with the interposer preloaded into the ranks only."""
    crowded = 2 * np > len(os.sched_getaffinity(0))
    settings = {"LD_LIBRARY_PATH": str(paths().lib)} | (env or {})
    libraries = [str(paths().preload_library)] if preload else []
    if mpi == "mpich" and paths().yield_library.exists():
        libraries.append(str(paths().yield_library))
        settings["OFFPATH_LAB_YIELD"] = "1"
    settings["LD_PRELOAD"] = ":".join(libraries)
    command = [launcher(mpi), "-np", str(np)]
    if mpi == "openmpi":
        command += ["--oversubscribe", "--bind-to", "none"]
    command += ["env", *[f"{name}={value}" for name, value in settings.items()], *map(str, argv)]
    environment = os.environ | native_environment(mpi, crowded)
    return captured(command, env=environment)


def sides(mpi, np, case, memory, seed=1, env=None, plugin=None):
    folder = paths().prefix / "tests" / "openmp_mpi"
    program = folder / mpi / "sides"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    plugin = plugin or folder / "libomptarget.rtl.x86_64.so"
    regions = folder / f"openmp_mpi_regions_{mpi}.so"
    return start(mpi, np, [program, plugin, regions, case, memory, seed], NATIVE | (env or {}))


@pytest.mark.grid(6)
@pytest.mark.parametrize("memory", ("shared", "staged"))
@pytest.mark.parametrize("case", ("directions", "requests", "collectives", "windows", "alone", "errors", "lost"))
@pytest.mark.parametrize("mpi", MPIS)
def test_both_sides(mpi, case, memory):
    result = sides(mpi, 2, case, memory)
    assert result.returncode == 0 and "passed" in result.stdout, result.stderr


@pytest.mark.grid(2)
@pytest.mark.parametrize("case", ("collectives", "windows", "requests"))
@pytest.mark.parametrize("mpi", MPIS)
def test_both_sides_of_four_ranks(mpi, case):
    result = sides(mpi, 4, case, "shared")
    assert result.returncode == 0 and "passed" in result.stdout, result.stderr


@pytest.mark.grid(3)
@pytest.mark.parametrize("np", (2, 4))
@pytest.mark.parametrize("memory", ("shared", "staged"))
@pytest.mark.parametrize("mpi", MPIS)
def test_random_messages_between_all_sides(mpi, memory, np):
    seed = random.SystemRandom().randrange(1 << 32)
    result = sides(mpi, np, "mixture", memory, seed)
    assert result.returncode == 0 and "passed" in result.stdout, f"seed {seed}: {result.stderr}"


@pytest.mark.parametrize("mpi", MPIS)
def test_errors_are_clear(mpi):
    result = sides(mpi, 2, "errors", "shared")
    lines = result.stderr.splitlines()
    assert any("MPI_Send or MPI_Isend in a target region of rank 0 failed" in line for line in lines), result.stderr
    assert any("MPI_Comm_dup is not served in target regions" in line for line in lines), result.stderr


@pytest.mark.parametrize("mpi", MPIS)
def test_without_a_plugin_nothing_is_served(mpi):
    """MPI_Init saw no plugin: the regions' calls are errors with one reason, and the host's program goes on."""
    result = sides(mpi, 2, "errors", "shared", plugin="none")
    assert result.returncode != 0 and "failed" in result.stdout
    assert "MPI calls in target regions" in result.stderr


def compiled(folder, mpi, source):
    """With plain clang: the wrapper of mpi.h declares its handles for devices, too."""
    (folder / "mpi.h").write_text("#pragma omp declare target\n#include_next <mpi.h>\n#pragma omp end declare target\n")
    flags = ("--showme:compile", "--showme:link") if mpi == "openmpi" else ("-compile_info", "-link_info")
    words = [
        captured([f"mpicc.{mpi}", flag], check=True).stdout.split()
        for flag in flags
    ]
    compile_words = [word for word in words[0] if word.startswith("-I")]
    link_words = [word for word in words[1] if word.startswith(("-L", "-l"))]
    program = folder / source.stem
    subprocess.run(
        [
            CLANG,
            "-O2",
            "-fopenmp",
            "-fopenmp-targets=x86_64-pc-linux-gnu",
            f"-I{folder}",
            *compile_words,
            source,
            "-o",
            program,
            *link_words,
        ],
        check=True,
        capture_output=True,
    )
    return program


@pytest.mark.grid(4)
@needs_clang
@pytest.mark.parametrize("np", (2, 4))
@pytest.mark.parametrize("name", ("p2p", "rma", "collective"))
@pytest.mark.parametrize("mpi", MPIS)
def test_programs(mpi, name, np, tmp_path):
    if name == "p2p" and np != 2:
        pytest.skip("a program for two ranks")
    succeeded(start(mpi, np, [compiled(tmp_path, mpi, SOURCES / f"{name}.c")]))


@pytest.mark.grid(3)
@needs_clang
@pytest.mark.parametrize("where", ([], ["--host"]), ids=("dpu", "host"))
@pytest.mark.parametrize("np", (1, 2, 3))
@pytest.mark.parametrize("mpi", MPIS)
def test_halo_is_right(mpi, np, where, tmp_path):
    program = compiled(tmp_path, mpi, ROOT / "apps" / "halo" / "halo.c")
    small = ["--rows", "40", "--columns", "60", "--steps", "5", "--outer", "6", "--work", "2"]
    result = start(mpi, np, [program, *small, *where])
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stdout + result.stderr


@pytest.mark.grid(2)
@requires_root
@pytest.mark.parametrize("case", ("mixture", "windows", "collectives"))
@pytest.mark.parametrize("mpi", MPIS)
def test_two_nodes(mpi, case, lab_name):
    if (mpi, case) == ("openmpi", "windows"):
        pytest.skip("Open MPI 4.1 has no windows between nodes over TCP with MPI_THREAD_MULTIPLE (osc/pt2pt refuses)")
    folder = paths().prefix / "tests" / "openmp_mpi"
    argv = [
        folder / mpi / "sides",
        folder / "libomptarget.rtl.x86_64.so",
        folder / f"openmp_mpi_regions_{mpi}.so",
        case,
        "shared",
        "7",
    ]
    with Lab(nodes=2, rate="1gbit", name=lab_name) as lab:
        result = lab.mpirun(mpi, 2, [str(word) for word in argv], offload=True, env=NATIVE, timeout=LIMIT_S)
    assert result.returncode == 0 and "passed" in result.stdout, result.stderr
