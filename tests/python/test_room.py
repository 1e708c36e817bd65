# SPDX-License-Identifier: BSD-3-Clause
"""Files that do not fit into memory: one line before they are read, that says what to do."""

import math
import resource
import subprocess

import pytest
from conftest import LIMIT_S, ROOT, assert_one_line_error, offpath
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
    found = subprocess.run(
        [ROOT / "offpath", "report", file], capture_output=True, text=True, timeout=LIMIT_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
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
