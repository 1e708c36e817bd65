# SPDX-License-Identifier: BSD-3-Clause
"""However a command ends, nothing is lost that was there before and nothing stays that was not: full disks, readers
that have gone, limits, signals, names that are no words."""

import errno
import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import LIMIT_S, ROOT, assert_one_line_error, captured, eventually, offpath, requires_root, succeeded
from offpath import split
from offpath.base import console, files
from offpath.bench.kit import turns
from offpath.cli import main
from offpath.lab import inventory
from offpath.launch import memory

SCALE = ["plan", "scale", "--nodes", "2"]


@pytest.mark.parametrize("name", ["a\\[/b]", "a\nb", "a\x1b[31mb", "a\u2028b"])
def test_any_name_is_said_in_one_line(name):
    written = name.replace("\n", "\\n").replace("\x1b", "\\x1b").replace("\u2028", "\\u2028")
    assert_one_line_error(offpath("info", name), f"{written} was not found")
    assert_one_line_error(offpath("plan", name), f"{written} cannot be read")


def test_any_name_is_shown_as_it_is(tmp_path):
    """rich takes words in brackets for its own."""
    name, cache = "p[/q]", {"XDG_CACHE_HOME": str(tmp_path)}
    known = {"machine": "m", "program": name, "launch": "l", "range": "ialltoall:1-2", "path": "host", "host_ns": 1,
             "dpu_ns": 2, "turns": 40, "seen": "2026-01-01 00:00:00"}  # fmt: skip
    files.write_json(tmp_path / "known.json", {"format": memory.FORMAT, "practices": [known]})
    succeeded(offpath("policy", "import", str(tmp_path / "known.json"), env=cache))
    assert name in succeeded(offpath("policy", "list", env=cache)).stdout
    (tmp_path / "p[").mkdir()
    shutil.copy(split.__path__[0] + "/variants/pcg.txt", tmp_path / name)
    assert name in succeeded(offpath("split", name, cwd=tmp_path)).stdout


@pytest.mark.parametrize("words", [["--version"], ["info", "--env"], ["lab", "status", "--json"], ["info", "--help"]])
def test_results_that_nobody_can_have(words, monkeypatch):
    """A full disk is one line; a reader that has gone is none."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # it is found out when the command ends
    with open("/dev/full", "w") as full:
        ended = subprocess.run([ROOT / "offpath", *words], stdout=full, stderr=subprocess.PIPE, text=True)
        assert ended.returncode == 1 and ended.stderr.startswith("offpath: disk full ("), ended
        assert ended.stderr.count("\n") == 1, ended
        # Nor is it said in Python's words where something else went wrong before.
        wrong = "import sys; from offpath.cli import main; main._status = lambda: print(1) or 2; main.main()"
        python = [ROOT / ".venv/bin/python", "-c", wrong]
        ended = subprocess.run(python, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT / "python")
        assert ended.returncode == 2 and ended.stderr.count("\n") == 1, ended
    ours, theirs = os.pipe()
    os.close(ours)
    ended = subprocess.run([ROOT / "offpath", *words], stdout=theirs, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_what_cannot_be_said_does_not_end_the_work(tmp_path):
    """Nor are results lost with the messages."""
    page = tmp_path / "page.html"
    ours, theirs = os.pipe()
    os.close(ours)
    with open("/dev/full", "w") as full:
        for nobody in (full, theirs):
            words = [ROOT / "offpath", "run", "--", "sh", "-c", "echo result; exit 3"]
            ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=nobody, text=True, cwd=tmp_path)
            assert (ended.returncode, ended.stdout) == (3, "result\n")
            words = [ROOT / "offpath", *SCALE, "--html", page, "--json"]
            ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=nobody, text=True)
            assert ended.returncode == 0 and ended.stdout.startswith("{")
    os.close(theirs)


def test_old_files_stay_whole_where_there_is_no_room(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("what was there before")
    ended = offpath(*SCALE, "--html", str(page), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
    assert_one_line_error(ended, str(page))
    assert page.read_text() == "what was there before" and [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_a_full_disk_names_the_file(capsys):
    assert main._refused(OSError(errno.ENOSPC, "No space left on device", "a.html")) == 1
    assert capsys.readouterr().err == "offpath: a.html cannot be written (disk full). Make room and run it again.\n"


def test_files_are_written_as_if_in_place(tmp_path):
    """What a link leads to, with the rights it has; what is no file takes what is written."""
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_text("old")
    kept.chmod(0o640)
    link.symlink_to("kept")
    files.write_text(link, "new")
    assert link.is_symlink() and kept.read_text() == "new" and kept.stat().st_mode & 0o777 == 0o640
    before = os.umask(0o027)
    try:
        files.write_text(tmp_path / "first", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "first").stat().st_mode & 0o777 == 0o640
    files.write_text(Path("/dev/null"), "new")
    assert not os.path.isfile("/dev/null")
    shown = succeeded(offpath(*SCALE, "--html", "/dev/stdout"))
    assert shown.stdout.startswith("<!doctype html>")
    with (tmp_path / "all").open("w") as all_of_it:
        subprocess.run([ROOT / "offpath", *SCALE, "--html", "/dev/stdout"], stdout=all_of_it, check=True)
        assert os.path.samestat(os.fstat(all_of_it.fileno()), (tmp_path / "all").stat())


def test_a_file_that_is_not_written_to_its_end_is_the_old_one(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("old")
    with pytest.raises(KeyboardInterrupt), files.replacing(kept) as file:
        file.write("new")
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), console.to_file(kept) as where:
        where.print("new")
        raise KeyboardInterrupt
    assert kept.read_text() == "old" and list(tmp_path.iterdir()) == [kept]


def test_letters_do_not_depend_on_the_locale(tmp_path):
    """A page that was written under one is read under another."""
    page = tmp_path / "page.html"
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    succeeded(offpath(*SCALE, "--html", str(page), env=env))
    page.write_text('{"letters": "\u00e4"}', encoding="utf-8")
    assert_one_line_error(offpath("plan", str(page), env=env), "is no profile")
    script = "from pathlib import Path; from offpath.base import files; files.write_text(Path('x'), '\\xe4\\udcff')"
    environ = os.environ | env | {"PYTHONPATH": str(ROOT / "python")}
    subprocess.run([ROOT / ".venv/bin/python", "-c", script], env=environ, cwd=tmp_path, check=True)
    assert (tmp_path / "x").read_bytes() == "\u00e4\\udcff".encode()


@pytest.mark.parametrize("script, status", [("exit 3", 3), ("kill -INT $$", 130), ("true", 1)])
def test_a_command_of_which_there_is_no_profile_keeps_its_status(script, status, tmp_path):
    ended = offpath("profile", "--", "sh", "-c", script, cwd=tmp_path)
    assert_one_line_error(ended, "no rank recorded anything", status=status)


def test_a_program_that_we_need_and_that_is_missing_is_named(tmp_path):
    for name in ("sh", "dirname", "readlink"):
        (tmp_path / name).symlink_to(shutil.which(name))
    assert_one_line_error(offpath("info", "/bin/true", env={"PATH": str(tmp_path)}), "ldd was not found")


def test_a_working_directory_that_has_gone(tmp_path):
    def gone():
        (tmp_path / "gone").mkdir()
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()

    environ = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    for word, *words in (
        ["x cannot be written", *SCALE, "--html", "x"],  # before anything long begins
        ["x cannot be written", "split", "pcg", "--json", "x"],
        ["working directory", "run", "--trace", "x", "--", "true"],
    ):
        ended = captured([ROOT / ".venv/bin/python", "-m", "offpath", *words], env=environ, preexec_fn=gone)
        assert_one_line_error(ended, word)


def test_how_far_it_is_goes_to_terminals_only(capsys):
    with turns.announced(3, None) as progress:
        progress.advance(progress.task_ids[0])
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_what_is_to_be_ignored_the_command_ignores_as_well(options):
    """As nohup wants it, and a shell of what is in the background. Launchers hear it all the same."""

    def deaf():
        for each in (signal.SIGHUP, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)

    us = "$$" if options else "$PPID"  # where nothing is said at the end the command is in our place
    script = f"kill -HUP $$; kill -INT $$; kill -HUP {us}; kill -INT {us}; echo still there"
    ended = succeeded(offpath("run", *options, "--", "sh", "-c", script, preexec_fn=deaf))
    assert ended.stdout == "still there\n" and "was ended" not in ended.stderr
    launcher = """import os, signal, time
heard = []
signal.signal(signal.SIGHUP, lambda *_: heard.append(True))
while not heard:
    os.kill(os.getppid(), signal.SIGHUP)
    time.sleep(0.01)
print("heard")"""
    if not options:
        ended = succeeded(offpath("run", "--", ".venv/bin/python", "-c", launcher, preexec_fn=deaf, cwd=ROOT))
        assert ended.stdout == "heard\n"


@requires_root
@pytest.mark.machine
@pytest.mark.parametrize("signum, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_lab_that_is_not_to_come_up_leaves_nothing(signum, status, lab_name):
    """However often it is said."""
    bringing = subprocess.Popen(
        [ROOT / "offpath", "lab", "up", "--nodes", "16", "--name", lab_name], stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signum, signal.SIG_DFL),
    )  # fmt: skip
    eventually(lambda: inventory.exists(lab_name))
    while bringing.poll() is None:
        bringing.send_signal(signum)
    assert "Traceback" not in bringing.stderr.read()
    assert bringing.wait(LIMIT_S) == status and not inventory.exists(lab_name)
