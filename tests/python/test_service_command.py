# SPDX-License-Identifier: BSD-3-Clause
"""`offpath service restart`, as the administrators' guide has it, under a job and where it cannot work."""

import contextlib
import os
import re
import shlex
import socket
import subprocess

import pytest
from conftest import ROOT, assert_one_line_error, eventually, offpath
from offpath.base.paths import paths
from test_top import folder, late, ranks_of, running  # noqa: F401

GUIDE = (ROOT / "docs" / "guide-administration.md").read_text()
(COMMAND,) = re.findall(r"^    (offpath service .*)$", GUIDE, re.MULTILINE)
SAYS = (
    r"job [0-9a-f]{16}: service (\d+) takes the place of (\d+) after \d+ ms; 2 processes go there as they communicate\n"
)


def restart(*words: str):
    return offpath(*shlex.split(COMMAND)[1:], *words)


@pytest.mark.machine
def test_the_service_of_a_running_job(late, folder):  # noqa: F811
    with running(late, folder) as (job, post):
        eventually(lambda: ranks_of(job))
        said = restart(str(job.pid))
        assert said.returncode == 0 and said.stderr == "", said
        after, before = map(int, re.fullmatch(SAYS, said.stdout).groups())
        assert os.path.exists(f"/proc/{before}")  # one rank has something there
        post.touch()
        eventually(lambda: not os.path.exists(f"/proc/{before}"))
        assert os.path.exists(f"/proc/{after}")


def test_where_nothing_runs(folder):  # noqa: F811
    assert_one_line_error(restart(), "no offloaded job of yours runs on this node", status=1)
    assert_one_line_error(restart("12345"), "no job '12345'", status=1)
    assert_one_line_error(offpath("service", "stop"), "stop")


def test_one_that_cannot_start_leaves_the_socket_of_the_one_that_runs(tmp_path):
    """It was to be moved there once it answers; whoever was to do that may be lost."""
    path, made_at = tmp_path / "job.sock", tmp_path / "job.next"
    token, token_written = os.pipe()
    os.write(token_written, bytes(16))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other, contextlib.closing(
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ) as own:
        for each, name in ((other, path), (own, made_at)):
            each.bind(str(name))
            each.listen()
        words = ["--listen-fd", str(own.fileno()), "--token-fd", str(token), "--socket-path", str(path)]
        environment = {**os.environ, "OFFPATH_SERVICE_LOG": str(tmp_path / "none" / "log")}
        ended = subprocess.run(
            [paths().service, *words], pass_fds=(own.fileno(), token), env=environment, stderr=subprocess.DEVNULL
        )
    os.close(token_written), os.close(token)
    assert ended.returncode == 1 and path.exists() and not made_at.exists()
