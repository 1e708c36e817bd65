# SPDX-License-Identifier: BSD-3-Clause
"""What runs that were killed have left in working directories: the next run, or service, on that node removes it."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import LIMIT_S, ROOT, eventually, offpath, require, succeeded
from offpath.base import abandoned, handover
from offpath.base.paths import paths

ATTACH = "from offpath.api.session import attach; session = attach(bytes(32)); print(flush=True); input()"


@pytest.fixture
def runtime(monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as base:  # a socket's path is short
        folder = Path(base) / "run"
        folder.mkdir(mode=0o700)
        monkeypatch.setenv("OFFPATH_RUNTIME_DIR", str(folder))
        yield folder


def by_a_run(folder: Path, _=None) -> None:
    folder.mkdir()
    assert offpath("run", "--", "true", cwd=folder).returncode == 0
    assert not list(folder.iterdir())


def by_a_service(folder: Path, over: contextlib.ExitStack) -> None:
    over.enter_context(attached({"OFFPATH_SERVICE_SHARE": "1"}))


def by_an_agent(folder: Path, over: contextlib.ExitStack) -> None:
    others = f"{os.environ['OFFPATH_RUNTIME_DIR']}-dpu"
    command = f"exec:env OFFPATH_RUNTIME_DIR={others} {paths().service} --for-agents"
    over.enter_context(attached({"OFFPATH_DPU": command}))


def by_a_dpus_service(folder: Path, _) -> None:
    succeeded(subprocess.run([str(paths().service), "--for-agents"], input=bytes(32), capture_output=True))


@contextlib.contextmanager
def attached(variables):
    """A service that nobody uses any more may end before its thread that removes these folders has begun."""
    require(paths().service, paths().lib / "liboffpath.so")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    client = subprocess.Popen([sys.executable, "-c", ATTACH], env=os.environ | variables, **pipes)
    assert client.stdout.readline() == "\n"
    yield
    client.communicate("\n", timeout=LIMIT_S)
    assert client.returncode == 0


@pytest.fixture(params=[by_a_run, by_a_service, by_an_agent, by_a_dpus_service], ids=lambda by: by.__name__)
def use(request, tmp_path):
    """Something of ours is used on this node, far from where the dead run was, until the test is over."""
    with contextlib.ExitStack() as over:
        yield lambda: request.param(tmp_path / "elsewhere", over)


@pytest.fixture
def runs(runtime, tmp_path):
    """Two that go on, each in a folder of its own."""
    started = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        words = [ROOT / "offpath", "run", "--", "sh", "-c", "echo ready; exec sleep 1000"]
        run = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path / name, start_new_session=True)
        started.append(run)
        assert run.stdout.readline() == "ready\n"
    yield started
    for run in started:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()


def test_what_a_killed_run_has_left_is_removed_and_nothing_of_one_that_goes_on(runs, runtime, tmp_path, use):
    one, other = (tmp_path / name for name in ("one", "other"))
    (left,) = one.iterdir()
    (left / "deeper").mkdir()
    (left / "deeper" / "file").touch()
    runs[0].kill()  # by hand: its program goes on
    runs[0].wait()
    use()
    eventually(lambda: not list(one.iterdir()))
    eventually(lambda: len(list(runtime.glob("*.run"))) == 1)
    assert len(list(other.iterdir())) == 1
    runs[1].kill()
    runs[1].wait()
    by_a_run(tmp_path / "last")
    assert not list(other.iterdir()) and not list(runtime.glob("*.run"))


def test_a_run_that_ends_leaves_no_record(runtime, tmp_path):
    script = f'ls "{runtime}"; cat "{runtime}"/*.run'
    result = offpath("run", "--", "sh", "-c", script, cwd=tmp_path)
    name, boot, folder = result.stdout.splitlines()
    assert name.endswith(".run") and boot == abandoned._boot_id()
    assert Path(folder).parent == tmp_path and Path(folder).name.startswith(".offpath-")
    assert not list(runtime.iterdir()) and not list(tmp_path.iterdir())


def test_what_is_nobodys_or_not_known_to_be_dead_stays(runtime, tmp_path, use):
    """A record of another node's, as nodes may share the folder; one that is locked; and what no run has made."""
    own, kept = abandoned._boot_id(), []

    def record(name: str, text: str, folder: Path | None = None) -> Path:
        if folder is not None:
            folder.mkdir()
            kept.append(folder)
        file = runtime / f"{name}.run"
        file.write_text(text)
        return file

    foreign = tmp_path / ".offpath-foreign"
    locked = tmp_path / ".offpath-locked"
    mine = tmp_path / "mine"
    stays = [
        record("foreign", f"11111111-2222-3333-4444-555555555555\n{foreign}\n", foreign),
        record("locked", f"{own}\n{locked}\n", locked),
    ]
    goes = [
        record("mine", f"{own}\n{mine}\n", mine),
        record("below", f"{own}\n{mine}/.offpath-x/..\n"),
        record("half", f"{own}\n{tmp_path}/.offpath-lo"),
        record("gone", f"{own}\n{tmp_path}/.offpath-gone\n"),
        record("empty", ""),
    ]
    link = tmp_path / ".offpath-link"
    link.symlink_to(mine)
    goes.append(record("link", f"{own}\n{link}\n"))
    if os.geteuid() == 0:
        others = tmp_path / ".offpath-others"
        goes.append(record("others", f"{own}\n{others}\n", others))
        os.chown(others, 12345, 12345)
    dead = tmp_path / ".offpath-dead"
    dead.mkdir()
    record("dead", f"{own}\n{dead}\n")
    with open(stays[1]) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        use()
        eventually(lambda: not dead.exists() and not any(file.exists() for file in goes))
        assert all(file.exists() for file in stays) and all(folder.is_dir() for folder in kept)
        assert link.is_symlink()


def test_without_a_runtime_folder_the_next_run_in_that_directory_removes_it(tmp_path, monkeypatch):
    monkeypatch.setenv("OFFPATH_RUNTIME_DIR", "/proc/none")
    with handover.folder(beside=tmp_path / "file") as folder:
        assert folder.parent == tmp_path and folder.is_dir()
    (tmp_path / f".offpath-{handover._machine()}-1-0-x").mkdir()
    with handover.folder(beside=tmp_path / "file") as folder:
        assert list(tmp_path.iterdir()) == [folder]
    assert not list(tmp_path.iterdir())
