# SPDX-License-Identifier: BSD-3-Clause
"""Arrays and checkpoints that the service writes."""

import asyncio
import errno
import itertools
import os
import secrets
import signal
import subprocess
import sys
import tempfile

import numpy as np
import offpath
import pytest
from api_support import environment  # noqa: F401
from conftest import captured, requires_root
from offpath.api import saving
from torch_support import run_ranks


@pytest.fixture
def session(environment, monkeypatch):  # noqa: F811
    for name in ("OFFPATH_SERVICE_SHARE", "OFFPATH_RUNTIME_DIR"):
        monkeypatch.setenv(name, environment[name])
    session = offpath.attach(secrets.token_bytes(32), node_only=True)
    yield session
    session.close()


ARRAYS = {
    "numbers": np.arange(300_000.0).reshape(300, 1000),
    "by columns": np.asfortranarray(np.arange(60).reshape(3, 4, 5)),
    "strided": np.arange(1000)[::3],
    "one": np.float32(3),
    "none": np.empty((0, 7)),
    "fields": np.array([(1, 2.5, b"ab")], dtype=[("a", "i4"), ("b", "f8"), ("c", "S2")]),
    "many fields": np.zeros(3, dtype=[(f"field number {at}", "i2") for at in range(5000)]),
    "dates": np.array(["2026-11-27"], dtype="datetime64[D]"),
    "other order": np.arange(5, dtype=">i4"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_file_is_as_numpys(name, session, tmp_path):
    array = ARRAYS[name]
    before = session.counters()["completed_count"]
    saving = offpath.save(tmp_path / "ours.npy", array)
    assert saving.wait() == str(tmp_path / "ours.npy") and saving.done
    assert (session.counters()["completed_count"] > before) == bool(array.nbytes), "the service wrote nothing"
    np.save(tmp_path / "theirs.npy", array)
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()
    assert (tmp_path / "ours.npy").stat().st_mode == (tmp_path / "theirs.npy").stat().st_mode
    assert len(list(tmp_path.iterdir())) == 2


def test_the_old_file_stays_until_the_new_one_is_there(session, tmp_path):
    path, large = tmp_path / "state.npy", 10_000_000
    offpath.save(path, np.zeros(large)).wait()
    saving = offpath.save(path, np.ones(large))
    while not (known := saving.test()):
        old = np.load(path, mmap_mode="r")
        assert (len(old), old[-1]) == (large, 0) or saving.test()
    assert known and (np.load(path) == 1).all()


def test_the_newer_of_two_files_stays(session, tmp_path):
    """Though the older one, which nobody waits for, may end later."""
    offpath.save(tmp_path / "state.npy", np.zeros(20_000_000))
    offpath.save(tmp_path / "state.npy", np.ones(3)).wait()
    session.close()
    assert (np.load(tmp_path / "state.npy") == [1, 1, 1]).all() and len(os.listdir(tmp_path)) == 1


def test_a_file_is_on_the_disk_before_it_takes_the_place_of_the_old_one(session, tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        call = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, call=call, name=name: (done.append(name), call(*given))[1])
    offpath.save(tmp_path / "state.npy", np.ones(1000)).wait()
    assert done == ["fsync", "replace"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_ctrl_c_makes_no_failure_of_a_file_that_is_there(name, session, tmp_path, monkeypatch):
    call, calls = getattr(os, name), []

    def interrupted(*given):
        call(*given)
        calls.append(name)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, name, interrupted)
    saving = offpath.save(tmp_path / "state.npy", np.ones(1000))
    with pytest.raises(KeyboardInterrupt):
        saving.wait()
    assert saving.wait() and saving.done and (np.load(tmp_path / "state.npy") == 1).all()
    assert os.listdir(tmp_path) == ["state.npy"] and not session.savings


def test_what_nobody_waits_for_is_saved_when_the_session_ends(session, tmp_path):
    for at in range(20):
        offpath.save(tmp_path / f"{at}.npy", np.full(10_000, at))
    session.close()
    assert all((np.load(tmp_path / f"{at}.npy") == at).all() for at in range(20)) and len(os.listdir(tmp_path)) == 20


def test_a_program_that_is_killed_leaves_the_old_file(session, tmp_path):
    code = """if True:
        import os, secrets, signal, numpy, offpath
        session = offpath.attach(secrets.token_bytes(32), node_only=True)
        offpath.save("state.npy", numpy.zeros(10)).wait()
        saving = offpath.save("state.npy", numpy.ones(1_000_000))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL and (np.load(tmp_path / "state.npy") == 0).all()
    (rest,) = {*os.listdir(tmp_path)} - {"state.npy"}
    assert rest.startswith(".state.npy.") and rest.endswith(".part")


def test_what_a_killed_program_has_left_is_in_nobodys_way(session, tmp_path, monkeypatch):
    """In containers the next program often has its number."""
    monkeypatch.setattr(saving, "_numbers", itertools.count())
    left = [tmp_path / f".state.npy.{os.getpid()}.{at}.part" for at in range(2)]
    for path in left:
        path.write_text("cut short")
    offpath.save(tmp_path / "state.npy", np.ones(1000)).wait()
    assert (np.load(tmp_path / "state.npy") == 1).all() and all(path.read_text() == "cut short" for path in left)


def test_a_file_keeps_its_rights_and_may_have_a_long_name(session, tmp_path):
    path = tmp_path / ("n" * 251 + ".npy")
    for rights in (0o600, 0o444, 0o660):
        offpath.save(path, np.ones(1000)).wait()
        os.chmod(path, rights)
        offpath.save(path, np.zeros(1000)).wait()
        assert path.stat().st_mode & 0o7777 == rights and (np.load(path) == 0).all()
    assert len(os.listdir(tmp_path)) == 1


def test_it_is_awaited(session, tmp_path):
    async def program():
        return await asyncio.gather(*(offpath.save(tmp_path / str(at), np.ones(at)) for at in range(5)))

    assert asyncio.run(program()) == [str(tmp_path / str(at)) for at in range(5)]


def test_a_lost_service_loses_no_file(session, tmp_path):
    numbers = np.arange(10_000_000)
    saving = offpath.save(tmp_path / "a.npy", numbers)
    os.kill(session.counters()["service_pid"], signal.SIGKILL)
    saving.wait()
    offpath.save(tmp_path / "b.npy", numbers).wait()
    assert all((np.load(tmp_path / name) == numbers).all() for name in ("a.npy", "b.npy"))
    assert len(os.listdir(tmp_path)) == 2


def test_what_cannot_be_a_file_is_refused(session, tmp_path):
    with pytest.raises(offpath.ArgumentError, match="is no plain file"):
        offpath.save("/dev/null", np.ones(3))
    with pytest.raises(offpath.ArgumentError, match="holds Python objects"):
        offpath.save(tmp_path / "a.npy", np.array([{}]))
    with pytest.raises(FileNotFoundError, match="nowhere/a.npy"):
        offpath.save(tmp_path / "nowhere" / "a.npy", np.ones(3))
    assert os.path.exists("/dev/null") and not os.path.isfile("/dev/null") and not os.listdir(tmp_path)


@requires_root
def test_a_full_disk_is_an_error_and_leaves_the_old_file(session):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
        try:
            path = os.path.join(folder, "state.npy")
            offpath.save(path, np.zeros(10)).wait()
            with pytest.raises(OSError, match="state.npy") as refused:
                offpath.save(path, np.ones(1_000_000)).wait()
            assert refused.value.errno == errno.ENOSPC and (np.load(path) == 0).all()
            assert os.listdir(folder) == ["state.npy"]
            offpath.save(path, np.ones(1_000_000))
            with pytest.warns(RuntimeWarning, match="not saved: .*No space left"):
                session.close()
        finally:
            subprocess.run(["umount", folder], check=True)


def test_a_link_stays_one(session, tmp_path):
    (tmp_path / "latest.npy").symlink_to("first.npy")
    offpath.save(tmp_path / "latest.npy", np.ones(3)).wait()
    assert (tmp_path / "latest.npy").is_symlink() and (np.load(tmp_path / "first.npy") == 1).all()


@pytest.mark.parametrize("how", [(), ("alone",)])
def test_a_checkpoint_is_as_torchs_and_its_state_may_change(how, tmp_path):
    """Of a rank of torch.distributed, and of a process that never began that."""
    assert run_ranks("torch_checkpoint.py", 1, str(tmp_path / "checkpoint.pt"), *how) == ["the same\n"]


def test_without_a_session_it_says_what_to_do():
    code = "import offpath; offpath.save('/tmp/never.npy', [1])"
    done = captured([sys.executable, "-c", code])
    assert "Call offpath.init() first" in done.stderr and not os.path.exists("/tmp/never.npy")
