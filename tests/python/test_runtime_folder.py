# SPDX-License-Identifier: BSD-3-Clause
"""The folder whose sockets and records are believed: ours alone, or refused; and no process but a service ends."""

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest
from conftest import assert_one_line_error, offpath
from offpath.base import handover, proc
from offpath.base.errors import UserError
from offpath.base.files import new_file, private_folder
from offpath.base.paths import runtime_folder
from offpath.dpu import service
from offpath.launch import stats


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    monkeypatch.setenv("OFFPATH_RUNTIME_DIR", str(folder))
    return folder


def test_it_is_made_for_its_owner_only(folder):
    assert runtime_folder() == folder and folder.stat().st_mode & 0o777 == 0o700


def test_what_is_made_for_a_run_can_be_used_and_removed_whatever_the_umask(folder, tmp_path):
    """It would stay as a folder that nobody can enter, and later runs would have no service."""
    before = os.umask(0o777)
    try:
        with handover.folder(beside=tmp_path / "t.json") as made, stats.private_file(made) as file:
            modes = [os.stat(each).st_mode & 0o777 for each in (runtime_folder(), made, file)]
    finally:
        os.umask(before)
    assert modes == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("kind", ("open", "link", "file", "missing parent", "foreign"))
def test_what_others_may_own_is_refused(kind, folder, tmp_path):
    if kind == "open":
        folder.mkdir()
        folder.chmod(0o770)
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif kind == "file":
        folder.touch()
    elif kind == "missing parent":
        folder = folder / "deeper"
    elif os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    else:
        folder.mkdir(mode=0o700)
        os.chown(folder, 65534, 65534)
    with pytest.raises(UserError, match="OFFPATH_RUNTIME_DIR"):
        private_folder(folder)
    if kind == "link":
        for words in (["top", "--once"], ["device", "stop", "--all"]):
            assert_one_line_error(offpath(*words), "OFFPATH_RUNTIME_DIR")


def test_a_session_folder_of_another_machine_is_not_needed(tmp_path, monkeypatch):
    monkeypatch.delenv("OFFPATH_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_folder() == tmp_path / "offpath"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "gone"))
    assert str(runtime_folder()) == f"/tmp/offpath-{os.getuid()}"


@pytest.mark.parametrize("parent", ("another user's", "open to all"))
def test_a_session_folder_where_others_could_exchange_ours_is_not_taken(parent, tmp_path, monkeypatch):
    """su and sudo may leave the variable as the user before has it."""
    monkeypatch.delenv("OFFPATH_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_folder() == tmp_path / "offpath"
    if parent == "open to all":
        tmp_path.chmod(0o777)
    elif os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    else:
        os.chown(tmp_path, 65534, 65534)
    assert str(runtime_folder()) == f"/tmp/offpath-{os.getuid()}"
    tmp_path.chmod(0o1777)
    if parent == "open to all":
        assert runtime_folder() == tmp_path / "offpath"


def test_new_files_follow_no_links(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "log").symlink_to(tmp_path / "precious")
    with new_file(tmp_path / "log") as file:
        file.write(b"new")
    assert (tmp_path / "precious").read_text() == "kept" and (tmp_path / "log").read_text() == "new"


def test_a_record_ends_no_process_but_a_service(folder):
    """A number may have come to mean another process, or the record may be damaged."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        pid = bystander.pid
        record = service.Record("x", "x86_64", "a:1", "key", "log", pid, proc.began(pid), False)
        devices = private_folder(private_folder(folder) / "devices")
        (devices / "x.json").write_text(json.dumps(asdict(record)))
        assert service.load("x") is None
        service.stop(record)
        assert bystander.poll() is None
        bystander.communicate(b"\n")
    assert bystander.returncode == 0
    for pid in (-1, 0, 1, "all"):
        (devices / "y.json").write_text(json.dumps(asdict(record) | {"pid": pid}))
        assert service.load("y") is None
