# SPDX-License-Identifier: BSD-3-Clause
"""A recording that ends early: what there is is kept, and the cause is named."""

import errno
import os
import signal
import stat
import subprocess

import pytest
from conftest import AS_ROOT, LIMIT_S, ROOT, captured, eventually, offpath, require, requires_root, succeeded
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.launch import mpis
from offpath.plan import profile_command
from offpath.telemetry import operations, otf2_export, perfetto
from offpath.trace import profile, record
from telemetry_support import part, rank_lines, write_parts

OPERATIONS = 1052  # of each rank, in programs/cut.c
ENV = os.environ | AS_ROOT


def command(mpi, programs, *arguments):
    require(paths().lib / f"liboffpath_mpi_{mpi}.so")
    extra = ["--oversubscribe"] if mpi == mpis.OPENMPI else []
    return [mpis.launcher(mpi), *extra, "-np", "2", str(programs / f"cut_{mpi}"), *arguments]


@pytest.mark.parametrize("mpi", [mpis.OPENMPI, mpis.MPICH])
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_what_was_recorded(mpi, signum, programs, tmp_path):
    trace = tmp_path / "t.json"
    given = [str(ROOT / "offpath"), "run", "--share", "--trace", str(trace), "--"]
    process = subprocess.Popen([*given, *command(mpi, programs, str(tmp_path / "ready"))], env=ENV, text=True,
                               stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)  # fmt: skip
    eventually(lambda: process.poll() is not None or all((tmp_path / f"ready.{rank}").exists() for rank in (0, 1)))
    assert process.poll() is None, process.communicate()
    process.send_signal(signum)
    errors = process.communicate(timeout=LIMIT_S)[1]
    said = [line for line in errors.splitlines() if line.startswith("offpath: ")]
    assert said[0].startswith(f"offpath: the command was ended by {signum.name}, and no rank reported"), errors
    assert f"{2 * OPERATIONS} operations: {trace}" in errors and "2 of 2 ranks did not reach MPI_Finalize" in errors
    run = perfetto.load(trace)
    assert len([each for each in run.operations if each.kind == "iallreduce"]) == 2 * OPERATIONS
    result = offpath("report", str(trace), "--text")
    assert result.returncode == 0 and "2 of 2 ranks did not reach MPI_Finalize" in result.stderr, result.stderr


@requires_root
@pytest.mark.parametrize("room", ["0", "64k", "1m"])
@pytest.mark.parametrize("mpi", [mpis.OPENMPI, mpis.MPICH])
def test_a_full_disk_is_named(mpi, room, programs, tmp_path):
    """Before the first record, in the midst of them, and when the trace is written."""
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size={'64k' if room == '0' else room} none {small} && "
    fill = f"cat /dev/zero > {small}/other 2>&1 | true; " if room == "0" else ""
    result = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount + fill + 'exec "$@"', "sh", str(ROOT / "offpath"), "run",
         "--share", "--trace", str(small / "t.json"), "--", *command(mpi, programs, "x", "fill")],
        env=ENV, text=True, capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "disk full" in result.stderr and "damaged" not in result.stderr, result.stderr
    assert "Traceback" not in result.stderr and "Record the run again" not in result.stderr, result.stderr


@requires_root
@pytest.mark.parametrize("mpi", [mpis.OPENMPI, mpis.MPICH])
def test_a_full_disk_for_statistics_is_named(mpi, programs, tmp_path):
    """Not that the ranks report nothing."""
    small = tmp_path / "small"
    small.mkdir()
    given = [str(ROOT / "offpath"), "run", "--share", "--stats", str(small / "s.jsonl"), "--"]
    hello = command(mpi, programs)[:-1] + [str(programs / f"hello_{mpi}")]
    prepare = f"mount -t tmpfs -o size=64k none {small} && cat /dev/zero > {small}/other 2>&1 | true; "
    result = succeeded(captured(["unshare", "-m", "sh", "-c", prepare + 'exec "$@"', "sh", *given, *hello], env=ENV))
    assert f"could not be written in {small} (disk full)" in result.stderr, result.stderr
    assert "No space left on device" in result.stderr and "no rank reported" not in result.stderr, result.stderr


@pytest.mark.parametrize("option", ["--stats", "--trace"])
def test_a_file_that_cannot_be_written_hides_nothing_else(option, programs, tmp_path):
    """The other file is there, as is the closing line, and the status is the program's."""
    (tmp_path / "full").symlink_to("/dev/full")
    other = {"--stats": "--trace", "--trace": "--stats"}[option]
    program = [mpis.launcher(mpis.MPICH), "-np", "2", str(programs / "hello_mpich")]
    result = offpath("run", "--share", option, str(tmp_path / "full"), other, str(tmp_path / "other"), "--", *program)
    assert result.returncode == 0 and "could not be written (disk full)" in result.stderr, result.stderr
    assert "2 ranks on 1 node" in result.stderr and (tmp_path / "other").stat().st_size > 0, result.stderr
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.parametrize("words", [["report", "--text"], ["report", "-o", "/dev/full"]])
def test_a_view_on_a_full_disk_is_one_line(words, tmp_path):
    run = operations.join(record.of_parts(write_parts(tmp_path)))
    perfetto.write(run, tmp_path / "t.json")
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [str(ROOT / "offpath"), *words, str(tmp_path / "t.json")], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 1 and "disk full" in result.stderr and result.stderr.count("\n") == 1, result.stderr


def test_a_summary_goes_to_the_file_that_is_named(tmp_path):
    run = operations.join(record.of_parts(write_parts(tmp_path)))
    perfetto.write(run, tmp_path / "t.json")
    shown = offpath("report", "--text", str(tmp_path / "t.json"))
    kept = offpath("report", "--text", str(tmp_path / "t.json"), "-o", str(tmp_path / "summary"))
    assert kept.returncode == 0 and kept.stdout == "", kept
    assert (tmp_path / "summary").read_text() == shown.stdout != ""


def test_a_profile_on_a_full_disk_says_so(tmp_path):
    lines = rank_lines(0)
    lines[0]["errno"] = errno.ENOSPC
    (tmp_path / "rank.0").write_bytes(part(lines[:4]))
    with pytest.raises(UserError, match="cut short .disk full."):
        profile_command.merge(tmp_path / "rank", tmp_path / "p.jsonl")


def test_a_profile_that_is_of_no_use_does_not_replace_one_that_is(tmp_path):
    (tmp_path / "p.jsonl").write_text("of an earlier run")
    for cut in (4, None):  # without its end, and without the other rank
        lines = rank_lines(0)
        lines[0] |= {"format": profile.FORMAT, "version": profile.VERSION}
        (tmp_path / "rank.0").write_bytes(part(lines[:cut]))
        with pytest.raises(UserError, match="p.jsonl is cut short .rank "):
            profile_command.merge(tmp_path / "rank", tmp_path / "p.jsonl")
        assert (tmp_path / "p.jsonl").read_text() == "of an earlier run"


@requires_root
def test_an_archive_on_a_full_disk_is_one_line(tmp_path):
    """And nothing is left of it. The library finds out when it closes its files, or before."""
    pytest.importorskip("otf2")
    lines = rank_lines(0)
    begin, step = lines[-1]["end_ns"], {"call": "Wait", "wait": [], "file": "/nowhere/app", "offset": 64}
    many = [step | {"begin_ns": begin + 9 * i, "end_ns": begin + 9 * i + 5} for i in range(20_000)]
    (tmp_path / "rank.0").write_bytes(part([*lines[:-1], *many, {"end_ns": begin + 10**6}]))
    (tmp_path / "rank.1").write_bytes(part(rank_lines(1)))
    perfetto.write(operations.join(record.of_parts(sorted(tmp_path.glob("rank.*")))), tmp_path / "t.json")
    small = tmp_path / "small"
    small.mkdir()
    for room in ("8k", "512k"):
        report = f"{ROOT}/offpath report {tmp_path}/t.json --otf2 {small}/a; echo $?; ls {small}"
        command = ["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size={room} none {small} && {report}"]
        result = captured(command)
        assert result.stdout == "1\n" and result.stderr.count("\n") == 1, result
        assert "a could not be written (disk full)" in result.stderr, result.stderr


def test_an_archive_wants_all_ranks(tmp_path):
    pytest.importorskip("otf2")
    run = operations.join(record.of_parts(write_parts(tmp_path)[:1]))
    perfetto.write(run, tmp_path / "t.json")
    with pytest.raises(UserError, match="cut short"):
        otf2_export.write(tmp_path / "t.json", tmp_path / "archive")
