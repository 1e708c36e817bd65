# SPDX-License-Identifier: BSD-3-Clause
"""What the build promises: which MPIs it finds, under which names, and how little a first demo waits for."""

import os
import shutil
import subprocess

import pytest
from conftest import ROOT
from offpath import comparison, mpis
from offpath.errors import UserError

PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(found LANGUAGES NONE)
include({ROOT}/cmake/Mpi.cmake)
foreach(mpi ${{OFFPATH_MPIS}})
  get_target_property(folders mpi_${{mpi}} INTERFACE_INCLUDE_DIRECTORIES)
  message(STATUS "MPI ${{mpi}} IN ${{folders}}")
endforeach()
"""


@pytest.fixture
def configure(tmp_path):
    """Configures with only the compilers given in PATH; name in PATH -> the compiler behind it."""
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    tools = tmp_path / "bin"
    tools.mkdir()

    def run(compilers: dict, **env):
        for name, compiler in compilers.items():
            (tools / name).symlink_to(shutil.which(compiler))
        command = [shutil.which("cmake"), "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build"]
        command += ["-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", f"-DCMAKE_MAKE_PROGRAM={shutil.which('ninja')}"]
        clean = {name: value for name, value in os.environ.items() if name != "CC" and not name.startswith("MPICC_")}
        env = clean | {"PATH": f"{tools}:/nowhere"} | env
        return subprocess.run(command, capture_output=True, text=True, env=env)

    return run


def found(result) -> list[str]:
    assert result.returncode == 0, result.stderr
    return [line.split()[2] for line in result.stdout.splitlines() if line.startswith("-- MPI ")]


@pytest.mark.parametrize("kind, missing", [("openmpi", "MPICH"), ("mpich", "Open MPI")])
def test_one_mpi_is_enough_and_plain_names_will_do(configure, kind, missing):
    result = configure({"mpicc": f"mpicc.{kind}"})
    assert found(result) == [kind]
    assert f"-- {missing}: not found, nothing is built for it" in result.stdout


def test_compilers_are_named_by_variables(configure):
    result = configure({}, MPICC_OPENMPI=shutil.which("mpicc.openmpi"), MPICC_MPICH=shutil.which("mpicc.mpich"))
    assert found(result) == ["openmpi", "mpich"]


def test_a_module_may_set_cc(configure):
    assert found(configure({}, CC=shutil.which("mpicc.mpich"))) == ["mpich"]


def test_a_variable_that_names_something_else_is_an_error(configure):
    result = configure({"mpicc": "mpicc.openmpi"}, MPICC_MPICH=shutil.which("mpicc.openmpi"))
    assert result.returncode != 0 and "is not a compiler of MPICH" in result.stderr


def test_no_mpi_is_an_error_that_says_what_to_do(configure):
    result = configure({})
    assert result.returncode != 0 and "No MPI was found" in result.stderr and "MPICC_OPENMPI=" in result.stderr


def test_a_first_demo_waits_for_few_steps():
    tree = ROOT / "build" / "release"
    if not (tree / "build.ninja").exists():
        pytest.skip(f"{tree} is not configured (make test does)")
    steps = subprocess.run(["ninja", "-C", tree, "-t", "commands", "demo"], capture_output=True, text=True, check=True)
    assert 50 < len(steps.stdout.splitlines()) <= 125


TREE = """
cmake_minimum_required(VERSION 3.25)
project(tree LANGUAGES C CXX)
add_library(parts STATIC one.c two.cpp)
"""


@pytest.fixture
def make_tree(tmp_path):
    """A tree with our Makefile, presets and launcher; a folder of tools, without ccache; and what makes it."""
    tree, tools = tmp_path / "tree", tmp_path / "bin"
    (tree / "tools").mkdir(parents=True)
    tools.mkdir()
    for name in ("Makefile", "CMakePresets.json", "tools/compile"):
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, tree / name)
    (tree / "CMakeLists.txt").write_text(TREE)
    (tree / "one.c").write_text("int one(void) { return 1; }\n")
    (tree / "two.cpp").write_text("int two() { return 2; }\n")
    (tree / "tools" / "setup").write_text("#!/bin/sh\n")
    (tree / "tools" / "setup").chmod(0o755)
    for folder in ("/usr/bin", "/bin"):
        for tool in os.scandir(folder):
            if tool.name != "ccache" and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool.path)

    def make(target: str) -> int:
        """How many files it compiled."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("CMAKE_", "CCACHE_"))}
        command = ["make", "--no-print-directory", target]
        result = subprocess.run(command, cwd=tree, capture_output=True, text=True, env=env | {"PATH": str(tools)})
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout.count("Building C")

    return tree, tools, make


def test_what_was_compiled_stays_compiled_when_ccache_comes(make_tree, tmp_path):
    tree, tools, make = make_tree
    assert make("build") == 2
    used = tmp_path / "used"
    (tools / "ccache").write_text(f'#!/bin/sh\necho "$CCACHE_BASEDIR" >>{used}\nexec "$@"\n')
    (tools / "ccache").chmod(0o755)
    assert make("programs") == 0
    (tree / "two.cpp").write_text("int two() { return 3; }\n")
    assert make("programs") == 1
    assert used.read_text().split() == [str(tree)]  # what is new goes by way of ccache, and other clones may use it
    (tools / "ccache").unlink()
    assert make("programs") == 0


def test_both_means_those_that_are_there(tmp_path, monkeypatch, capsys):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "liboffpath_mpi_mpich.so").touch()
    monkeypatch.setenv("OFFPATH_PREFIX", str(tmp_path))
    assert comparison.chosen_mpis("both") == ["mpich"]
    assert "Open MPI is left out" in capsys.readouterr().err
    monkeypatch.setattr(mpis, "installed", list)
    with pytest.raises(UserError, match="Neither"):
        comparison.chosen_mpis("both")
