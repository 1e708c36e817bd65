# SPDX-License-Identifier: BSD-3-Clause
"""Files that do not fit into memory: one line before they are read, that says what to do."""

import math
import os
import resource
from pathlib import Path

import pytest
from conftest import ROOT, assert_one_line_error, captured, offpath, requires_root
from offpath.base import room
from offpath.base.errors import UserError
from offpath.trace import record
from telemetry_support import write_parts


@pytest.fixture
def vast(tmp_path):
    """It takes no room on the disk."""
    file = tmp_path / "trace.json"
    with file.open("w") as opened:
        opened.truncate(8 << 40)
    return file


@pytest.mark.parametrize("words", [["report"], ["report", "--otf2", "archive"], ["plan", "replay"]], ids=" ".join)
def test_a_vast_file_is_refused_beforehand(vast, words, tmp_path):
    found = offpath(*words, str(vast), cwd=tmp_path)
    assert_one_line_error(found, str(vast), "8.0 TiB", "are free here")
    assert "Record each" in found.stderr or "Profile a shorter run" in found.stderr


def test_the_limit_of_the_process_counts(tmp_path):
    file = tmp_path / "trace.json"
    with file.open("w") as opened:
        opened.truncate(400 << 20)
    limit = 3 << 30
    found = captured(
        [ROOT / "offpath", "report", file], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    )
    assert_one_line_error(found, "400.0 MiB", "3.9 GiB", "--trace-sample")


def test_what_ranks_have_written_is_looked_at_as_well(tmp_path, monkeypatch):
    files = write_parts(tmp_path)
    assert len(record.of_parts(files)) == 2
    monkeypatch.setattr(room, "available", lambda: 1000.0)
    with pytest.raises(UserError, match="the recording has .*--trace-sample"):
        record.of_parts(files)


def test_a_file_that_is_not_there_is_for_its_reader(tmp_path):
    room.check([tmp_path / "none"], 10, "none", "Nothing")
    assert 0 < room.available() <= math.inf


def group(folder, limit, used, files=0, names=("memory.max", "memory.current", "")):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]}inactive_file {files}\n{names[2]}active_file 0\n")


OLD = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")


@pytest.mark.parametrize("line, home, names", [("0::", ".", ()), ("4:memory:", "memory", (OLD,))], ids=["v2", "v1"])
def test_the_limit_of_control_groups_counts(line, home, names, tmp_path, monkeypatch):
    """Of the process's own and of those around it, of both versions. The page cache is no use that lasts."""
    monkeypatch.setattr(room, "_CGROUP", tmp_path / "groups")
    monkeypatch.setattr(room, "_GROUPS", tmp_path / "of-the-process")
    (tmp_path / "of-the-process").write_text(f"9:cpu:/else\n{line}/job/step\n")
    job = tmp_path / "groups" / home / "job"
    group(job, 5000, 1000, 0, *names)
    group(job / "step", "max", 1000, 0, *names)
    assert room.available() == 4000
    group(job / "step", 3000, 2900, 1400, *names)
    assert room.available() == 1500
    group(job / "step", 1000, 2900, 1400, *names)
    assert room.available() == 0


@requires_root
def test_a_report_in_a_control_group_is_refused_beforehand(tmp_path):
    home = Path("/sys/fs/cgroup/memory")
    limit = "memory.limit_in_bytes"
    if not home.exists():
        home, limit = Path("/sys/fs/cgroup"), "memory.max"
    own = home / f"offpath-{os.getpid()}"
    file = tmp_path / "trace.json"
    with file.open("w") as opened:
        opened.truncate(100 << 20)
    try:
        own.mkdir()
        (own / limit).write_text(str(300 << 20))
    except OSError as error:
        pytest.skip(f"there are no control groups of memory here ({error.strerror})")
    try:
        inside = f'echo $$ > {own}/cgroup.procs && exec "$@"'
        command = ["sh", "-c", inside, "sh", ROOT / "offpath", "report", file]
        found = captured(command)
        assert_one_line_error(found, "100.0 MiB", "1000.0 MiB", "--trace-sample")
    finally:
        own.rmdir()
