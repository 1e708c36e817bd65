# SPDX-License-Identifier: BSD-3-Clause
"""tools/check_includes.py on small trees, and on ours."""

import subprocess
import sys

import pytest
from conftest import ROOT

CHECKER = ROOT / "tools" / "check_includes.py"


def check(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = subprocess.run([sys.executable, CHECKER, root], capture_output=True, text=True)
    return result.returncode, result.stdout


@pytest.mark.parametrize(
    "file, include",
    [
        ("src/base/a.cpp", "wire/message.hpp"),
        ("src/client/a.cpp", "service/service.hpp"),
        ("src/service/a.cpp", "client/session.hpp"),
        ("src/engine/a.cpp", "fabric/ucx/ucx_fabric.hpp"),
        ("src/engine/a.cpp", "session/link.hpp"),
        ("src/fabric/loopback/a.cpp", "fabric/ucx/ucx_fabric.hpp"),
        ("src/fabric/fabric.hpp", "fabric/ucx/ucx_fabric.hpp"),
        ("frontends/mpi/a.cpp", "engine/engine.hpp"),
        ("frontends/mpi/a.cpp", "../shmem/b.hpp"),
        ("frontends/attach/a.cpp", "shmem/b.hpp"),
        ("frontends/attach/a.cpp", "client/session.hpp"),
        ("include/offpath/a.h", "base/result.hpp"),
        ("apps/fft3d/a.cpp", "offpath/offpath.h"),
    ],
)
def test_wrong_arrow_is_one_line(tmp_path, file, include):
    others = {"frontends/shmem/b.hpp": "", "src/wire/message.hpp": "", "include/offpath/offpath.h": ""}
    status, output = check(tmp_path, others | {file: f'\n#include "{include}"\n'})
    assert status == 1
    assert output.splitlines()[0].startswith(f"{file}:2: ")
    assert len(output.splitlines()) == 2


@pytest.mark.parametrize(
    "file, include",
    [
        ("src/wire/a.cpp", "base/result.hpp"),
        ("src/fabric/ucx/a.cpp", "fabric/fabric.hpp"),
        ("src/service/a.cpp", "fabric/ucx/ucx_fabric.hpp"),
        ("src/ops/collectives/a.cpp", "graph/graph.hpp"),
        ("src/client/a.cpp", "offpath/offpath.h"),
        ("frontends/mpi/a.cpp", "client/session.hpp"),
        ("frontends/mpi/a.cpp", "a.hpp"),
        ("frontends/mpi/a.cpp", "attach/b.hpp"),
        ("apps/fft3d/a.cpp", "vector"),
    ],
)
def test_right_arrow_is_clean(tmp_path, file, include):
    files = {
        "include/offpath/offpath.h": "",
        "frontends/mpi/a.hpp": "",
        "frontends/attach/b.hpp": "",
        file: f'#include "{include}"\n',
    }
    assert check(tmp_path, files) == (0, "check_includes: clean\n")


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


def test_component_nobody_listed(tmp_path):
    status, output = check(tmp_path, {"src/newcomer/a.cpp": ""})
    assert status == 1 and "newcomer" in output


def test_our_tree_keeps_the_arrows():
    result = subprocess.run([sys.executable, CHECKER], capture_output=True, text=True)
    assert result.stdout == "check_includes: clean\n"
