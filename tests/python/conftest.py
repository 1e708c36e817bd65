# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of the command line and the lab. None of them depends on timing or on the C++ parts."""

import concurrent.futures
import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

import drawn
import pytest
from drawn import FULL
from kinds import ALONE, LONG, SIDE_BY_SIDE

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
LIMIT_S = 300  # for a hang: a machine that builds other things beside takes minutes, too
_counter = itertools.count()

# Some random programs hang natively with Open MPI 4.1, so without a wish they are those that are known to end.
PROGRAM_SEED = int(os.environ.get(drawn.VARIABLE, 20261121))
SEED = drawn.seed()
os.environ[drawn.VARIABLE] = str(SEED)  # before workers are started: they read it, too

# Nodes of a lab have a /tmp of their own, so what their programs are to see is not there.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/var/tmp")
os.environ["OFFPATH_POLICY_FILE"] = "none"  # what somebody tuned on this machine is not tested here

# What tests start is to hear Ctrl-C: it may be ignored here, as in the background of a shell.
with contextlib.suppress(ValueError):  # in a thread of a worker, which was started so
    signal.signal(signal.SIGINT, signal.default_int_handler)

MPIS = ("openmpi", "mpich")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
requires_root = pytest.mark.skipif(os.geteuid() != 0, reason="the lab needs root")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    # Paths of sockets are bounded, so the folder of one of several workers has a short name.
    if hasattr(config, "workerinput") and config.option.basetemp:
        folder = Path(config.option.basetemp)
        config.option.basetemp = str(folder.with_name(folder.name.replace("popen-gw", "")))
    config.addinivalue_line("markers", "machine: runs MPI programs, labs or services (four of them at a time)")
    config.addinivalue_line("markers", "alone: looks at the whole machine, so nothing may run beside it")
    config.addinivalue_line("markers", "nightly: too long for every run; needs OFFPATH_TEST_FULL=1 (make nightly)")
    config.addinivalue_line("markers", "grid(n): of the sets of parameters n are drawn; all with make nightly")


def pytest_report_header():
    return f"OFFPATH_TEST_SEED={SEED} " + ("(grids in full)" if FULL else "(draws from grids; in full: make nightly)")


def _pools(items: list):
    """Tests of which so many are run as is said beside them: who asks for all of them says make nightly."""
    grids, long = {}, {}
    for item in items:
        name = item.module.__name__
        if mark := item.get_closest_marker("grid"):
            grids.setdefault((item.nodeid.split("[")[0], mark.args[0]), []).append(item)
        elif name in LONG and item.get_closest_marker("machine") and not item.get_closest_marker("nightly"):
            long.setdefault(name, []).append(item)
    yield from ((name, pool, count) for (name, count), pool in grids.items())
    yield from ((name, pool, -(-len(pool) // 3)) for name, pool in long.items())


def _of_other_mpi(items: list) -> set:
    """Where a test is there for each MPI, those with the one that is not drawn for its file."""
    twins: dict = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec and item.get_closest_marker("machine"):
            for mpi in set(MPIS) & {str(value) for value in callspec.params.values()}:
                twins.setdefault(item.nodeid.replace(mpi, "MPI"), {})[mpi] = item
    both = [pair for pair in twins.values() if len(pair) == 2]
    return {pair[random.Random(f"{SEED} {pair['mpich'].module.__name__}").choice(sorted(pair))] for pair in both}


def _left_out(items: list) -> set:
    """By the seed, so that another part is run for another change."""
    out = _of_other_mpi(items)
    for name, pool, count in _pools([item for item in items if item not in out]):
        out.update(set(pool) - set(random.Random(f"{SEED} {name}").sample(pool, min(count, len(pool)))))
    return out


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.module.__name__ not in SIDE_BY_SIDE or requires_root.mark in item.iter_markers():
            item.add_marker(pytest.mark.machine)
        if item.module.__name__ in ALONE:
            item.add_marker(pytest.mark.alone)
        if item.get_closest_marker("nightly") and not FULL:
            item.add_marker(pytest.mark.skip(reason="runs in make nightly"))
    # Asked for by name, a test is wanted.
    if not (FULL or config.option.keyword or any("::" in argument for argument in config.args)):
        left_out = _left_out(items)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_runtest_setup(item):
    if os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") != "1" and item.get_closest_marker("alone"):
        pytest.fail('this test looks at the whole machine. With -n give -m "not alone", too', pytrace=False)


def captured(argv: list, timeout: float | None = LIMIT_S, **options) -> subprocess.CompletedProcess:
    """Runs it to its end."""
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, **options)


def offpath(*arguments: str, env: dict | None = None, **options) -> subprocess.CompletedProcess:
    """Runs the command line to its end."""
    return captured([str(ROOT / "offpath"), *arguments], env=os.environ | (env or {}), **options)


def succeeded(result):
    """The result of something that has ended with 0."""
    assert result.returncode == 0, f"{result.stdout}{result.stderr}"
    return result


def require(*files: Path) -> None:
    """Skips the test where one of them is not built."""
    for file in files:
        if not file.exists():
            pytest.skip(f"{file} is not built")


def together(function, rows) -> list:
    """What it returns for each of the rows of arguments, at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
        return [each.result() for each in [pool.submit(function, *row) for row in rows]]


def eventually(look):
    """What look() finds, as soon as it is something."""
    until = time.monotonic() + LIMIT_S
    while not (found := look()):
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.02)
    return found


def assert_one_line_error(result: subprocess.CompletedProcess, *words: str, status: int | None = None) -> None:
    """What every error is: one line on stderr that says what is wrong, nothing on stdout, a status that is not 0."""
    assert result.returncode != 0 if status is None else result.returncode == status, result
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("offpath: ")
    for word in words:
        assert word in lines[0]


@pytest.fixture(scope="session")
def refusing_launchers(tmp_path_factory):
    """Folder with launchers of MPI that tell their version and start nothing."""
    folder = tmp_path_factory.mktemp("launchers")
    for name in ("mpirun", "mpiexec", "oshrun"):
        for each in (name, f"{name}.openmpi", f"{name}.mpich"):
            if real := shutil.which(each):
                refuse = "echo 'MPI in a test that is not marked machine: see tests/python/conftest.py' >&2; exit 1"
                (folder / each).write_text(f'#!/bin/sh\n[ "$1" != --version ] || exec {real} "$1"\n{refuse}\n')
                (folder / each).chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def no_mpi_beside_others(request, refusing_launchers, monkeypatch):
    if request.node.get_closest_marker("machine") is None:
        monkeypatch.setenv("PATH", f"{refusing_launchers}:{os.environ['PATH']}")


@pytest.fixture(scope="session", autouse=True)
def own_sessions_of_open_mpi(tmp_path_factory):
    """Workers' jobs begin and end beside each other: see offpath.launch.local.own_sessions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMPI_MCA_orte_tmpdir_base", str(tmp_path_factory.mktemp("openmpi")))
        yield


@pytest.fixture
def lab_name():
    """A name no other lab has; whatever a test leaves of that lab is removed."""
    name = f"t{os.getpid()}x{next(_counter)}"
    yield name
    if os.geteuid() == 0:
        from offpath.lab import inventory

        inventory.remove(name)


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Folder: some programs built with each MPI, and a prefix whose library only shows that it is loaded."""
    folder = tmp_path_factory.mktemp("programs")
    for mpi in MPIS:
        for name in ("hello", "kinds", "cut"):
            subprocess.run([f"mpicc.{mpi}", PROGRAMS / f"{name}.c", "-o", folder / f"{name}_{mpi}"], check=True)
    library = folder / "prefix" / "lib" / "liboffpath_mpi.so"
    library.parent.mkdir(parents=True)
    shim = library.with_name("liboffpath_yield.so")
    for source, target in ((PROGRAMS / "witness.c", library), (ROOT / "bench" / "yield_shim.c", shim)):
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", target], check=True)
    return folder


@pytest.fixture
def witness_env(programs):
    return {"OFFPATH_PREFIX": str(programs / "prefix"), **AS_ROOT}


@pytest.fixture(scope="module")
def lab():
    """Of two nodes."""
    from offpath.lab import Lab

    with Lab(nodes=2, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:
        yield lab


@pytest.fixture(scope="module", params=MPIS)
def traced(request, tmp_path_factory):
    """An MPI, and programs/traced.c built with it."""
    from offpath.base.paths import paths

    require(paths().lib / f"liboffpath_mpi_{request.param}.so")
    program = tmp_path_factory.mktemp(request.param) / "traced"
    subprocess.run([f"mpicc.{request.param}", PROGRAMS / "traced.c", "-O", "-g", "-o", program], check=True)
    return request.param, program
