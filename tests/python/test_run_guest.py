# SPDX-License-Identifier: BSD-3-Clause
"""`offpath run --` in front of a command changes nothing of what that command is, gets, says and ends with."""

import os
import pty
import signal
import subprocess
import sys

import pytest
from conftest import LIMIT_S, ROOT, captured, offpath
from offpath.base import errors, handover, paths
from offpath.launch import injection, memory

BOTH = pytest.mark.parametrize("off", [[], ["--off"]], ids=["offloaded", "off"])


def in_shell(text, env, **options):
    """`offpath` is the command line there."""
    function = f'offpath() {{ "{ROOT / "offpath"}" "$@"; }}\n'
    words = ["bash", "-c", function + text]
    return captured(words, env=os.environ | env, **options)


@BOTH
def test_a_locale_that_nobody_has_set_is_not_set(off, witness_env, monkeypatch):
    """Python sets one for itself, and what it starts would sort and convert otherwise."""
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    command = ("run", *off, "--", "sh", "-c", "echo ${LC_CTYPE-unset}")
    assert offpath(*command, env=witness_env).stdout == "unset\n"
    assert offpath(*command, env=witness_env | {"LC_CTYPE": "C.UTF-8"}).stdout == "C.UTF-8\n"


@BOTH
def test_signals_that_python_ignores_are_not_ignored(off, witness_env):
    """Else a program whose reader has gone would get an error in place of its end."""
    result = offpath("run", *off, "--", "grep", "SigIgn", "/proc/self/status", env=witness_env)
    ignored = int(result.stdout.split()[1], 16)
    assert not any(ignored & 1 << signum - 1 for signum in (signal.SIGPIPE, signal.SIGXFSZ))


@BOTH
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full", ">/dev/full"])
def test_closed_and_full_streams(off, closed, witness_env, tmp_path):
    """No line of ours goes where only the program's belong, and none that cannot be said changes the status."""
    result = in_shell(f"offpath run {' '.join(off)} -- sh -c 'exit 3' {closed}", witness_env, cwd=tmp_path)
    assert result.returncode == 3 and result.stdout == "" and "Traceback" not in result.stderr, result


def test_a_reader_of_our_line_that_has_gone_changes_no_status(witness_env, tmp_path):
    text = "{ offpath run -- sh -c 'read x <pipe; exit 3'; echo $? >status; } 2>&1 | { exec <&-; echo >pipe; }"
    in_shell(f"mkfifo pipe; {text}", witness_env, cwd=tmp_path)
    assert (tmp_path / "status").read_text() == "3\n"


@BOTH
def test_a_working_directory_that_is_gone(off, witness_env, tmp_path):
    text = f"mkdir gone; cd gone; rmdir ../gone; offpath run {' '.join(off)} -- true"
    result = in_shell(text, witness_env, cwd=tmp_path)
    assert result.returncode == 0 and "Traceback" not in result.stderr, result.stderr


def test_where_no_file_can_be_made_it_lies_with_what_runs(tmp_path, monkeypatch):
    def nowhere():
        raise FileNotFoundError("no usable temporary directory")

    def refused():
        raise errors.UserError("no runtime folder")

    monkeypatch.setattr(handover.tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(handover, "runtime_folder", lambda: tmp_path)
    missing = tmp_path / "missing" / "trace"
    with handover.folder(beside=missing) as folder:
        assert folder.parent == tmp_path
    monkeypatch.setattr(handover, "runtime_folder", refused)
    with pytest.raises(errors.UserError, match="TMPDIR"), handover.folder(beside=missing):
        pass


def test_a_user_without_home_and_account(monkeypatch):
    def unknown(self):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(paths.Path, "expanduser", unknown)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert str(paths.config_folder({})) == "/.config/offpath"
    assert str(memory.file()) == "/.cache/offpath/policy.sqlite3"


@pytest.mark.parametrize("options", [[], ["--policy", "auto"], ["--dpus", "none"]])
def test_folders_of_ones_own_that_cannot_be_looked_into(options, witness_env, tmp_path):
    """As HOME behind `su` or `sudo`, which is another user's. Root may look anywhere, so here it cannot be."""
    nowhere = str(tmp_path / ("x" * 300))
    env = witness_env | {"XDG_CONFIG_HOME": nowhere, "XDG_CACHE_HOME": nowhere}
    result = offpath("run", *options, "--", "sh", "-c", "exit 3", env=env | {"OFFPATH_POLICY_FILE": ""})
    assert result.returncode == 3 and "Traceback" not in result.stderr, result.stderr
    assert "nothing was learned yet" in offpath("policy", "list", env=env).stderr


@pytest.mark.parametrize("signum", [signal.SIGQUIT, signal.SIGALRM, signal.SIGXCPU])
def test_a_signal_that_would_end_us_reaches_the_program(signum, witness_env):
    """Else it would go on, without anybody who waits for it."""
    script = f'trap "exit 5" {signum.value}; echo ready; while :; do sleep 0.05; done'
    child = subprocess.Popen([ROOT / "offpath", "run", "--", "bash", "-c", script],
                             stdout=subprocess.PIPE, text=True, env=os.environ | witness_env,
                             preexec_fn=lambda: signal.signal(signum, signal.SIG_DFL))  # which shells may ignore
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signum)
    assert child.wait(LIMIT_S) == 5
    child.stdout.close()


COUNTS = """
import os, signal
parent, (bell, rope) = os.getppid(), os.pipe()
os.set_blocking(rope, False)
signal.set_wakeup_fd(rope)
for signum in (signal.SIG{name}, signal.SIGUSR1):
    signal.signal(signum, lambda *_: None)
print("ready", flush=True)
heard = b""
while signal.SIGUSR1 not in heard:
    heard += os.read(bell, 1)
    if len(heard) == 1:
        os.kill(parent, signal.SIGUSR1)  # comes back behind all that is passed on
os.write(rope, b"x")  # of signals that come together the last one may be heard first
heard += os.read(bell, 99)
print("heard", heard.count(signal.SIG{name}), flush=True)
"""


@pytest.mark.parametrize("before", (signal.SIG_DFL, signal.SIG_IGN))  # ignored: in the background of a script
@pytest.mark.parametrize(
    "name, key, stdin",
    [
        ("INT", b"\x03", None),
        ("QUIT", b"\x1c", None),
        ("INT", b"\x03", "/dev/null"),
        ("QUIT", b"\x1c", "/dev/null"),
        ("INT", None, "/dev/null"),  # by kill, of us alone
    ],
)
def test_a_key_of_the_terminal_is_heard_once(name, key, stdin, before, witness_env):
    """mpirun of Open MPI kills its ranks at once when it hears Ctrl-C twice."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            if stdin:
                os.dup2(os.open(stdin, os.O_RDONLY), 0)
            signal.signal(getattr(signal, f"SIG{name}"), before)
            words = [str(ROOT / "offpath"), "run", "--", sys.executable, "-c", COUNTS.format(name=name)]
            os.execve(words[0], words, os.environ | witness_env)
        finally:
            os._exit(127)
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 4096)
    if key:
        os.write(terminal, key)
    else:
        os.kill(pid, signal.SIGINT)
    while b"offpath:" not in said:
        said += os.read(terminal, 4096)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert b"heard 1" in said and status == 0, said


def test_what_is_named_like_a_launcher_gets_all_of_its_input(witness_env, tmp_path):
    """It is asked for its version first, and may say anything."""
    script = tmp_path / "mpirun.sh"
    script.write_text("#!/bin/sh\ncat\nprintf '\\377'\n")
    script.chmod(0o755)
    command = [ROOT / "offpath", "run", "-q", "--", script]
    result = subprocess.run(command, input=b"input", capture_output=True, timeout=LIMIT_S, env=os.environ | witness_env)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"input\377", b"")


OURS, TOOL = "/p/lib/liboffpath_mpi.so", "/t/tool.so"


@pytest.mark.parametrize(
    "mpi, given, expected",
    [
        ("openmpi", ["-x", f"LD_PRELOAD={TOOL}"], ["-x", f"LD_PRELOAD={TOOL}:{OURS}"]),
        ("openmpi", ["-x", "LD_PRELOAD"], ["-x", f"LD_PRELOAD=/e/other.so:{OURS}"]),
        ("openmpi", ["-x", "HOME", "LD_PRELOAD=x"], ["-x", "HOME", "LD_PRELOAD=x"]),
        ("mpich", ["-genv", "LD_PRELOAD", TOOL], ["-genv", "LD_PRELOAD", f"{TOOL}:{OURS}"]),
        ("mpich", ["-env", f"LD_PRELOAD={TOOL}"], ["-env", f"LD_PRELOAD={TOOL}:{OURS}"]),
    ],
)
def test_what_a_launcher_is_told_to_preload_comes_in_front_of_ours(mpi, given, expected, monkeypatch):
    monkeypatch.setattr(injection.mpis, "launcher_kind", lambda program: mpi)
    words, _ = injection.with_variables(["mpirun", *given, "prog"], {"LD_PRELOAD": f"/e/other.so:{OURS}"})
    assert words[-len(expected) - 1 :] == [*expected, "prog"]


def test_a_native_run_leaves_the_launchers_words_alone(monkeypatch):
    monkeypatch.setattr(injection.mpis, "launcher_kind", lambda program: "openmpi")
    words, _ = injection.with_variables(["mpirun", "-x", "LD_PRELOAD", "prog"], {"OFFPATH_ENABLE": "0"})
    assert words[-3:] == ["-x", "LD_PRELOAD", "prog"]
