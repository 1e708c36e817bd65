# SPDX-License-Identifier: BSD-3-Clause
"""What the build promises: which MPIs it finds, under which names, and how little a first demo waits for."""

import os
import re
import shutil

import pytest
from conftest import ROOT, captured, succeeded
from offpath.base.errors import UserError
from offpath.launch import mpis
from offpath.places import comparison

PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(found LANGUAGES NONE)
include({ROOT}/cmake/Mpi.cmake)
foreach(mpi ${{OFFPATH_MPIS}})
  get_target_property(folders mpi_${{mpi}} INTERFACE_INCLUDE_DIRECTORIES)
  message(STATUS "MPI ${{mpi}} IN ${{folders}}")
endforeach()
message(STATUS "FIRST ${{OFFPATH_FIRST_MPI}}")
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
        return captured(command, env=env)

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


@pytest.mark.parametrize("plain, first", [("openmpi", "openmpi"), ("mpich", "mpich"), (None, "openmpi")])
def test_the_mpi_of_a_first_demo_is_the_one_that_programs_here_are_built_with(configure, plain, first):
    """That of plain mpicc; where there is none, it is Open MPI."""
    compilers = {name: name for name in ("mpicc.openmpi", "mpicc.mpich")}
    result = configure(compilers | ({"mpicc": f"mpicc.{plain}"} if plain else {}))
    assert found(result) == ["openmpi", "mpich"]
    assert f"-- FIRST {first}\n" in result.stdout


def test_a_module_may_set_cc(configure):
    assert found(configure({}, CC=shutil.which("mpicc.mpich"))) == ["mpich"]


def test_a_variable_that_names_something_else_is_an_error(configure):
    result = configure({"mpicc": "mpicc.openmpi"}, MPICC_MPICH=shutil.which("mpicc.openmpi"))
    assert result.returncode != 0 and "is not a compiler of MPICH" in result.stderr


def test_no_mpi_is_an_error_that_says_what_to_do(configure):
    result = configure({})
    assert result.returncode != 0 and "No MPI was found" in result.stderr and "MPICC_OPENMPI=" in result.stderr


FUNCTIONS = f"""
cmake_minimum_required(VERSION 3.25)
project(functions LANGUAGES C)
set(OFFPATH_MPIS some)
add_library(mpi_some INTERFACE)
target_include_directories(mpi_some INTERFACE ${{CMAKE_SOURCE_DIR}})
include({ROOT}/cmake/MpiFunctions.cmake)
get_target_property(found mpi_some INTERFACE_COMPILE_DEFINITIONS)
message(STATUS "FOUND ${{found}}")
"""


def test_an_mpi_is_asked_for_functions_whatever_version_it_names(tmp_path):
    """As Open MPI 5 is: it names 3.1, and has persistent collectives but no large counts."""
    (tmp_path / "CMakeLists.txt").write_text(FUNCTIONS)
    (tmp_path / "mpi.h").write_text("#define MPI_VERSION 3\nint MPI_Bcast_init(int);\nint MPI_Isendrecv(int);\n")
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build"]
    done = captured(command, check=True)
    assert "FOUND OFFPATH_MPI_HAS_PERSISTENT;OFFPATH_MPI_HAS_ISENDRECV\n" in done.stdout


def test_a_first_demo_waits_for_few_steps():
    tree = ROOT / "build" / "release"
    if not (tree / "build.ninja").exists():
        pytest.skip(f"{tree} is not configured (make test does)")
    steps = captured(["ninja", "-C", tree, "-t", "commands", "demo"], check=True)
    assert 50 < len(steps.stdout.splitlines()) <= 117


def test_what_the_setup_of_a_demo_waits_for_has_its_line(tmp_path):
    """Where somebody looks, one that is drawn anew every second."""
    setup = (ROOT / "tools" / "setup").read_text()
    watched = re.search(r"^watched\(\) \{.*?^\}$", setup, re.DOTALL | re.MULTILINE)[0]
    script = f'log={tmp_path}/log\nsay() {{ echo "setup: $*"; }}\n{watched}\nwatched "fetching" sleep 1.5'
    (tmp_path / "script").write_text(script)
    done = captured(["bash", tmp_path / "script"])
    assert re.fullmatch(r"setup: fetching \.\.\.\nsetup: fetching: done in [1-9] s\n", done.stdout), done.stdout
    drawn = captured(["script", "-qec", f"bash {tmp_path}/script", "/dev/null"])
    assert "setup: fetching ... 1s" in drawn.stdout, drawn.stdout


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
        result = succeeded(captured(command, cwd=tree, env=env | {"PATH": str(tools)}))
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


def test_a_package_that_cannot_be_made_is_not_built_for(make_tree):
    tree, tools, _ = make_tree
    shutil.copy2(ROOT / "tools" / "deb", tree / "tools" / "deb")
    (tools / "dh").unlink(missing_ok=True)
    command = ["make", "--no-print-directory", "deb"]
    result = captured(command, cwd=tree, env={"PATH": str(tools)})
    assert result.returncode != 0 and "Run: apt-get install debhelper" in result.stderr, result.stderr
    assert not (tree / "build").exists()


def put(file, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def debian(tmp_path):
    """Runs tools/setup on a Debian that offers some packages, and has those that were installed before."""
    tools, tree = tmp_path / "bin", tmp_path / "tree"
    shutil.copytree(ROOT / "tools", tree / "tools")
    for file in (tree / "tools" / "packages").glob("*.txt"):
        file.write_text("")
    put(tree / "tools" / "packages" / "build.txt", "# needs\nmust\nold-1 | new-2\nold-3 ? a thing\nextra ? another\n")
    put(tools / "dpkg-query", f"#!/bin/sh\nsed 's/^/ii  /' {tmp_path}/installed\n")
    policy = f"for name; do echo $name:; grep -qx $name {tmp_path}/offered && echo '  Candidate: 1'; done; exit 0"
    put(tools / "apt-cache", f"#!/bin/sh\nshift\n{policy}\n")
    add = f"[ $1 = update ] || for name; do echo $name >>{tmp_path}/installed; done"
    put(tools / "apt-get", f"#!/bin/sh\necho $1 >>{tmp_path}/asked\n{add}\n")

    def run(offered: str, user: int = 0) -> tuple:
        """Its result, what is installed then, and how often apt-get was asked."""
        put(tools / "id", f"#!/bin/sh\necho {user}\n")
        (tmp_path / "offered").write_text(offered.replace(" ", "\n"))
        for file in ("installed", "asked"):
            (tmp_path / file).touch()
        env = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
        done = captured([tree / "tools" / "setup", "--debian", "build"], env=env)
        names = {word for word in (tmp_path / "installed").read_text().split() if word[0] not in "-i"}
        return done, names, len((tmp_path / "asked").read_text().split())

    return run


def test_what_a_debian_lacks_and_is_no_must_is_said_in_one_line(debian):
    done, installed, asked = debian("must new-2 extra")
    assert done.returncode == 0 and installed == {"must", "new-2", "extra"}, done
    assert done.stdout.splitlines()[-1] == "setup: this system has no old-3. Missing will be: a thing"
    again = debian("must new-2 extra")
    assert (again[0].returncode, again[0].stdout, again[2]) == (0, "", asked)


def test_a_must_that_a_debian_lacks_is_an_error(debian):
    done, installed, _ = debian("old-1 extra", user=1)
    assert done.returncode == 1 and "sudo apt-get install must old-1 extra" in done.stderr and not installed


def test_who_may_not_install_goes_without_what_is_no_must(debian, tmp_path):
    put(tmp_path / "installed", "must\nold-1\n")
    done, installed, _ = debian("must old-1 extra", user=1)
    assert done.returncode == 0 and "extra" not in installed
    assert "sudo apt-get install extra\n" in done.stdout


INTERPRETER = """#!/bin/bash
case "$*" in
"-c import numpy") exit 0 ;;
-c*) exit 1 ;;
*venv*) mkdir -p {root}/.venv/bin && cp "$0" {root}/.venv/bin/python ;;
*pip*--target*) grep -oE '^[a-z]\\w+' "${{*: -3:1}}" | sort -u >{root}/fetched ;;
esac
"""


def test_an_installation_fetches_what_its_python_lacks_and_nothing_for_pictures(tmp_path):
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "python").mkdir()
    shutil.copy(ROOT / "python" / "requirements.txt", tmp_path / "python")
    put(tmp_path / "interpreter", INTERPRETER.format(root=tmp_path))
    command = [tmp_path / "tools" / "setup", "--packages", tmp_path / "into"]
    env = os.environ | {"SETUP_PYTHON": str(tmp_path / "interpreter")}
    done = captured(command, env=env)
    fetched = (tmp_path / "fetched").read_text().split()
    assert fetched == ["networkx", "prometheus_client", "rich", "tomli", "typer"], done.stdout + done.stderr


def test_both_means_those_that_are_there(tmp_path, monkeypatch, capsys):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "liboffpath_mpi_mpich.so").touch()
    monkeypatch.setenv("OFFPATH_PREFIX", str(tmp_path))
    assert comparison.chosen_mpis("both") == ["mpich"]
    assert "Open MPI is left out" in capsys.readouterr().err
    monkeypatch.setattr(mpis, "installed", list)
    with pytest.raises(UserError, match="Neither"):
        comparison.chosen_mpis("both")


def test_the_folder_behind_a_linked_environment_is_left_alone(tmp_path):
    shutil.copytree(ROOT / "tools", tmp_path / "tree" / "tools")
    put(tmp_path / "tree" / "python" / "requirements.txt", "")
    put(tmp_path / "elsewhere" / "kept", "")
    (tmp_path / "tree" / ".venv").symlink_to(tmp_path / "elsewhere")
    done = captured([tmp_path / "tree" / "tools" / "setup", "docs"])
    assert done.returncode == 1 and "Remove the link" in done.stderr, done
    assert [file.name for file in (tmp_path / "elsewhere").iterdir()] == ["kept"]
