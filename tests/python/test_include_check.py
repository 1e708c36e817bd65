# SPDX-License-Identifier: BSD-3-Clause
"""tools/check_includes.py on small trees, and on ours."""

import importlib.util
import sys

import pytest
from conftest import ROOT, captured

CHECKER = ROOT / "tools" / "check_includes.py"


def load():
    spec = importlib.util.spec_from_file_location("check_includes", CHECKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def place_of(include):
    """Where the included file of a small tree is."""
    top = include.partition("/")[0]
    folders = {"offpath": "include", "shmem": "frontends", "mpi": "frontends", "attach": "frontends"}
    return f"{folders.get(top, 'src')}/{include}"


def check(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = captured([sys.executable, CHECKER, root])
    return result.returncode, result.stdout


@pytest.mark.parametrize(
    "file, include",
    [
        ("src/base/a.cpp", "wire/message.hpp"),
        ("src/client/a.cpp", "service/service.hpp"),
        ("src/service/a.cpp", "client/session.hpp"),
        ("src/engine/a.cpp", "fabric/ucx/ucx_fabric.hpp"),
        ("src/engine/a.cpp", "session/link.hpp"),
        ("src/engine/carriers/a.cpp", "engine/core/operation.hpp"),
        ("src/engine/runner/a.cpp", "fabric/fabric.hpp"),
        ("src/engine/rooms/a.cpp", "engine/multicasts/multicasts.hpp"),
        ("src/engine/rooms/a.cpp", "engine/parts.hpp"),
        ("src/engine/coding/a.cpp", "engine/carriers/blocks.hpp"),
        ("src/fabric/loopback/a.cpp", "fabric/ucx/ucx_fabric.hpp"),
        ("src/fabric/fabric.hpp", "fabric/ucx/ucx_fabric.hpp"),
        ("frontends/mpi/lanes/a.cpp", "engine/engine.hpp"),
        ("frontends/mpi/lanes/a.cpp", "shmem/b.hpp"),
        ("frontends/mpi/lanes/a.cpp", "mpi/rma/b.hpp"),  # up
        ("frontends/mpi/rma/a.cpp", "mpi/collectives/b.hpp"),  # beside
        ("frontends/attach/a.cpp", "mpi/job/b.hpp"),
        ("frontends/shmem/a.cpp", "mpi/job/b.hpp"),
        ("frontends/openmp/a.cpp", "mpi/proxy/b.hpp"),
        ("frontends/attach/a.cpp", "shmem/b.hpp"),
        ("frontends/attach/a.cpp", "client/session.hpp"),
        ("include/offpath/a.h", "base/result.hpp"),
        ("apps/fft3d/a.cpp", "offpath/offpath.h"),
    ],
)
def test_wrong_arrow_is_one_line(tmp_path, file, include):
    status, output = check(tmp_path, {place_of(include): "", file: f'\n#include "{include}"\n'})
    assert status == 1
    assert output.splitlines()[0].startswith(f"{file}:2: ")
    assert "may not include" in output
    assert len(output.splitlines()) == 2


@pytest.mark.parametrize(
    "file, include",
    [
        ("src/wire/a.cpp", "base/result.hpp"),
        ("src/fabric/ucx/a.cpp", "fabric/fabric.hpp"),
        ("src/service/a.cpp", "fabric/factory.hpp"),
        ("src/ops/collectives/a.cpp", "graph/graph.hpp"),
        ("src/client/a.cpp", "offpath/offpath.h"),
        ("frontends/mpi/job/a.cpp", "client/session.hpp"),
        ("frontends/mpi/rma/a.cpp", "mpi/rma/b.hpp"),
        ("frontends/mpi/rma/a.cpp", "mpi/native/b.hpp"),
        ("frontends/mpi/rma/a.cpp", "attach/b.hpp"),
        ("frontends/shmem/a.cpp", "attach/b.hpp"),
    ],
)
def test_right_arrow_is_clean(tmp_path, file, include):
    files = {place_of(include): "", file: f'#include "{include}"\n'}
    assert check(tmp_path, files) == (0, "check_includes: clean\n")


@pytest.mark.parametrize(
    "file, include",
    [
        ("frontends/mpi/lanes/a.cpp", "b.hpp"),  # bare, though it lies beside
        ("frontends/mpi/lanes/a.cpp", "../job/b.hpp"),
        ("src/base/a.cpp", "b.hpp"),
        ("src/base/a.cpp", "base/nowhere.hpp"),
        ("apps/fft3d/a.cpp", "nowhere.hpp"),
        ("tests/unit/a.cpp", "base/nowhere.hpp"),
    ],
)
def test_include_that_has_no_place_is_one_line(tmp_path, file, include):
    beside = {"frontends/mpi/lanes/b.hpp": "", "frontends/mpi/job/b.hpp": "", "src/base/b.hpp": ""}
    status, output = check(tmp_path, beside | {file: f'#include "{include}"\n'})
    assert status == 1
    assert output.startswith(f"{file}:1: {include} is in none of our folders")
    assert len(output.splitlines()) == 2


@pytest.mark.parametrize("file", ["apps/fft3d/a.cpp", "tests/unit/a.cpp", "bench/krylov/a.cpp"])
def test_programs_may_name_what_lies_beside_and_the_libraries_of_others(tmp_path, file):
    files = {f"{file.rpartition('/')[0]}/b.hpp": "", file: '#include "b.hpp"\n#include <vector>\n'}
    assert check(tmp_path, files) == (0, "check_includes: clean\n")


def test_two_rooms_that_include_each_other_are_never_clean(tmp_path):
    files = {
        "frontends/mpi/job/a.hpp": '#include "mpi/lanes/b.hpp"\n',
        "frontends/mpi/lanes/b.hpp": '#include "mpi/job/a.hpp"\n',
    }
    assert check(tmp_path, files)[0] == 1


def test_circle_of_declared_arrows_is_refused(tmp_path, monkeypatch):
    checker = load()
    monkeypatch.setitem(checker.STANDS_ON, "base", ["engine"])
    assert any("component base stands on itself" in line for line in checker.check(tmp_path))


@pytest.mark.parametrize("statement", ["throw 1;", "abort();", "std::exit(2);", "std::terminate();", 'getenv("A");'])
def test_ending_the_host_process_and_trusting_its_environment_are_refused(tmp_path, statement):
    status, output = check(tmp_path, {"src/client/a.cpp": f"void f()\n{{\n  {statement}\n}}\n"})
    assert status == 1
    assert output.startswith("src/client/a.cpp:3: ")


def test_words_in_comments_and_strings_are_free(tmp_path):
    text = (
        '// may throw\n/* abort() */ const char* s = "exit(1)"; void f() { _exit(0); at_exit(); secure_getenv(s); }\n'
    )
    assert check(tmp_path, {"src/client/a.cpp": text})[0] == 0


@pytest.mark.parametrize("folder", ["src/newcomer", "frontends/mpi/newcomer", "frontends/newcomer"])
def test_component_nobody_listed(tmp_path, folder):
    status, output = check(tmp_path, {f"{folder}/a.cpp": ""})
    assert status == 1 and "newcomer" in output


def test_file_outside_the_rooms(tmp_path):
    status, output = check(tmp_path, {"frontends/mpi/a.cpp": ""})
    assert status == 1 and "component frontends/mpi has no line" in output


def test_listed_components_exist():
    for name in load().STANDS_ON:
        assert (ROOT / name).is_dir() or (ROOT / "src" / name).is_dir(), name


def test_our_tree_keeps_the_arrows():
    result = captured([sys.executable, CHECKER])
    assert result.stdout == "check_includes: clean\n"
