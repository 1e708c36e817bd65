# SPDX-License-Identifier: BSD-3-Clause
"""tools/nightly with steps of our own: what it says at the end, where it goes on, and that nothing is left."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import conftest
import pytest
from conftest import ROOT, captured
from kinds import ALONE, LONG, SIDE_BY_SIDE

DRIVER = """
import importlib.machinery, importlib.util, pathlib, sys
loader = importlib.machinery.SourceFileLoader("nightly", "{root}/tools/nightly")
nightly = importlib.util.module_from_spec(importlib.util.spec_from_loader("nightly", loader))
sys.modules["nightly"] = nightly
loader.exec_module(nightly)
nightly.ROOT = pathlib.Path.cwd()
nightly.OUT = nightly.ROOT / "build" / "nightly"
nightly.sources = lambda: (nightly.ROOT / "sources").read_text()
nightly.steps = lambda: [nightly.Step(name, ("sh", "-c", command)) for name, command in {steps!r}.items()]
sys.exit(nightly.main())
"""


@pytest.fixture
def nightly(tmp_path):
    """Runs it with these steps, shell commands, in a tree of its own."""
    (tmp_path / "sources").write_text("first")

    def run(steps: dict[str, str], *arguments: str) -> subprocess.CompletedProcess:
        driver = tmp_path / "driver.py"
        driver.write_text(DRIVER.format(root=ROOT, steps=steps))
        command = [sys.executable, str(driver), *arguments]
        return captured(command, cwd=tmp_path, timeout=100)

    return run


def test_all_files_and_fuzz_targets_are_in_some_step(tmp_path, monkeypatch):
    loader = importlib.machinery.SourceFileLoader("nightly", str(ROOT / "tools" / "nightly"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("nightly", loader))
    monkeypatch.setitem(sys.modules, "nightly", module)
    loader.exec_module(module)
    monkeypatch.setattr(module, "OUT", tmp_path)
    steps = module.steps()
    assert len({step.name for step in steps}) == len(steps)
    words = [word for step in steps for word in step.command]
    files = [str(file.relative_to(ROOT)) for file in (ROOT / "tests" / "python").glob("test_*.py")]
    assert sorted(word for word in words if word.startswith("tests/python/test_")) == sorted(files)
    fuzz = {f"build/fuzz/bin/fuzz_{file.name.removesuffix('_fuzz.cpp')}" for file in (ROOT / "fuzz").glob("*_fuzz.cpp")}
    assert fuzz <= set(words)


def test_ends_with_a_table_and_one_line(nightly):
    result = nightly({
        "lint": "true",
        "ctest": "echo '97% tests passed, 1 tests failed out of 30'; exit 8",
        "pytest-beside": "echo '12 passed, 2 skipped, 5 deselected in 3.21s'",
        "pytest-lab": "echo '===== 1 failed, 4 passed, 1 error in 61.00s (0:01:01) ====='; exit 1",
        "pytest-plan": "echo 'no tests ran in 0.01s'; exit 5",
    })  # fmt: skip
    assert result.returncode == 1
    *rows, last = result.stdout.splitlines()
    assert last == "46 passed, 3 failed"
    assert [row.split()[:4] for row in rows[1:]] == [
        ["lint", "1", "0", "0"], ["ctest", "29", "1", "0"], ["pytest", "16", "2", "2"],
    ]  # fmt: skip
    assert rows[-1].endswith("pytest-lab") and rows[1].split()[-1] == "0:00"
    assert "ctest: FAILED, see build/nightly/ctest.log" in result.stderr


def test_goes_on_where_it_was_stopped(nightly, tmp_path):
    def runs() -> list[str]:
        return (tmp_path / "runs").read_text().split()

    first, second = "echo first >>runs", "echo second >>runs"
    stopped = nightly({"lint": first, "ctest": f"{second}; kill -TERM $PPID; sleep 10"})
    assert stopped.returncode == 143 and stopped.stdout == "" and "goes on where it was" in stopped.stderr
    steps = {"lint": first, "ctest": second}
    assert nightly(steps).stdout.endswith("\n2 passed, 0 failed\n")
    assert runs() == ["first", "second", "second"]
    nightly(steps)  # it had ended
    assert runs()[3:] == ["first", "second"]
    nightly({"lint": first, "ctest": f"{second}; kill -INT $PPID; sleep 10"})
    (tmp_path / "sources").write_text("other")
    nightly(steps)
    assert runs()[-2:] == ["first", "second"]
    nightly({"lint": first, "ctest": f"{second}; kill -INT $PPID; sleep 10"})
    nightly(steps, "--anew")
    assert runs()[-2:] == ["first", "second"]
    assert nightly(steps, "ctest").stdout.endswith("\n1 passed, 0 failed\n")
    assert nightly(steps, "elsewhere").returncode == 2


def is_alive(process: str) -> bool:
    """And no process that only its parent has not noticed yet."""
    try:
        return Path(f"/proc/{process.strip()}/environ").read_bytes() != b""
    except OSError:
        return False


def test_nothing_is_left_behind(nightly, tmp_path):
    left = "setsid sleep 987 >/dev/null 2>&1 & echo $! >left; echo $PYTEST_DEBUG_TEMPROOT >folder; echo 1 passed in 1s"
    result = nightly({"pytest-lab": left})
    assert result.stdout.endswith("\n1 passed, 1 failed\n")
    assert not is_alive((tmp_path / "left").read_text())
    assert not Path((tmp_path / "folder").read_text().strip()).exists()
    stopped = nightly({"pytest-lab": f"{left}; kill -HUP $PPID; sleep 10"})
    assert stopped.returncode == 129
    assert not is_alive((tmp_path / "left").read_text())
    assert not Path((tmp_path / "folder").read_text().strip()).exists()


class Item:
    """What drawing looks at."""

    def __init__(self, file: str, name: str, mpi: str) -> None:
        self.nodeid = f"{file}.py::{name}[{mpi}]"
        self.module, self.callspec = SimpleNamespace(__name__=file), SimpleNamespace(params={"mpi": mpi})

    def get_closest_marker(self, name: str):
        return name == "machine" or None


def test_every_test_is_drawn_for_some_change(monkeypatch):
    """Of files that take long a third, one MPI where a test is there for both, and of others all."""
    files = (sorted(LONG)[0], "test_of_a_minute")
    mpis = ("openmpi", "mpich")
    items = [Item(file, f"test_{n}", mpi) for file in files for n in range(9) for mpi in mpis]
    items.append(Item("test_of_a_minute", "test_of_one_mpi", "openmpi"))
    seen = set()
    for seed in range(60):
        monkeypatch.setattr(conftest, "SEED", seed)
        kept = set(items) - conftest._left_out(items)
        assert len([item for item in kept if item.module.__name__ in LONG]) == 3
        assert len(kept) == 3 + 9 + 1
        seen |= kept
    assert seen == set(items)


def test_files_that_are_named_exist():
    files = {file.stem for file in (ROOT / "tests" / "python").glob("test_*.py")}
    assert SIDE_BY_SIDE | ALONE | LONG <= files
