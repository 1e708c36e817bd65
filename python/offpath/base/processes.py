# SPDX-License-Identifier: BSD-3-Clause
"""Running one command to its end, whatever happens to us meanwhile: signals, time limits, death."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn

from offpath.base.errors import UserError

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
ENDING_IN_ORDER = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # SIGQUIT: at once
FORWARDED = (*ENDING, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU)  # the last two: some schedulers
BY_KEY = (signal.SIGINT, signal.SIGQUIT)
STOP_GRACE_S = 5.0
Starts = Callable[[], subprocess.Popen]


@dataclass
class Completed:
    """How a command ended. `stdout` and `stderr` are None unless they were captured.

    `stats` has one dictionary per rank, as the ranks wrote them at MPI_Finalize; empty without offloading.
    """

    args: list[str]
    returncode: int
    stdout: str | None = None
    stderr: str | None = None
    stats: list[dict] = field(default_factory=list)
    interrupted_by: int | None = None

    @property
    def exit_status(self) -> int:
        """What a shell would report: 128 plus the signal for a command that a signal ended."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode

    @property
    def ending(self) -> int:
        """The same, but where we were told to end it 128 plus that signal: launchers make of it what they like."""
        return 128 + self.interrupted_by if self.interrupted_by in ENDING else self.exit_status

    @property
    def said(self) -> str:
        """All that was captured, errors first."""
        return f"{self.stderr or ''}\n{self.stdout or ''}"

    def raise_if_interrupted(self) -> None:
        """For loops over many runs: Ctrl-C ends the loop, not only the run."""
        if self.interrupted_by is not None:
            end(self.interrupted_by)


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    capture: bool = True,
    timeout: float | None = None,
    own_session: bool = True,
) -> Completed:
    """Runs `argv` to its end and passes the signals FORWARDED on to it, which do not end us.

    With `own_session` the command gets each signal exactly once, from us, and SIGTERM when we die; without it the
    command keeps the terminal, as a command the user typed must. Descriptors that we inherited are handed on: over one
    of them an MPI's rank talks to its launcher.
    Raises subprocess.TimeoutExpired after `timeout` seconds, when the command has been ended.
    """
    command = ["setpriv", "--pdeathsig", "TERM", *argv] if own_session else list(argv)
    pipe = subprocess.PIPE if capture else None
    received: list[int] = []
    with _forwarding(received, own_session) as start:
        try:
            child = start(lambda: subprocess.Popen(
                command, env=dict(env), stdout=pipe, stderr=pipe, text=True, errors="replace",
                start_new_session=own_session, close_fds=False,
            ))  # fmt: skip
        except OSError as error:
            raise no_program(command[0], not isinstance(error, FileNotFoundError)) from None
        try:
            stdout, stderr = child.communicate(timeout=timeout)
        except BaseException:
            _stop(child, own_session)
            raise
    return Completed(list(argv), child.returncode, stdout, stderr, interrupted_by=received[0] if received else None)


def end(signum: int, _frame: object = None) -> NoReturn:
    """Of a command line: leaves what it does as Ctrl-C does, and removes what it has made. What tells it once more does
    not come in between, nor does it reach what that starts."""
    told = [each for each in ENDING_IN_ORDER if signal.getsignal(each) is end]
    for each in told:  # first, as Python complains where one came before it was ignored
        signal.signal(each, lambda *_: None)
    with undisturbed():
        for each in told:
            signal.signal(each, signal.SIG_IGN)
    if signum == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + signum)


def end_in_order() -> None:
    """What tells a command line to end does so by end()."""
    for signum in ENDING_IN_ORDER:
        if not _is_ignored(signum):
            signal.signal(signum, end)


def _is_ignored(signum: int) -> bool:
    """We were started so, by nohup or in the background."""
    return signal.getsignal(signum) is signal.SIG_IGN


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """What tells us to end waits for the end of the block: what it makes and what it notes of that belong together."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_IN_ORDER)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def handling(signals: Iterable[int], handler: Callable[[int, object], None]) -> Iterator[None]:
    """For a while. Only the main thread may."""
    before = {signum: signal.signal(signum, handler) for signum in signals}
    try:
        yield
    finally:
        for signum, former in before.items():
            signal.signal(signum, former)


def in_background(argv: Sequence[str], output: IO[bytes], env: Mapping[str, str] | None = None) -> subprocess.Popen:
    """In a session of its own, with all that it says in a file."""
    return subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
    )


def not_started(process: subprocess.Popen, log: Path, is_up: Callable[[], bool], until_s: float) -> str | None:
    """Its last words where it has ended, or time is up, before that holds (what a kernel logs aside); None: it does."""
    while not is_up():
        if process.poll() is not None or time.monotonic() >= until_s:
            said = [line for line in log.read_text(errors="replace").splitlines() if line.strip() and line[0] != "["]
            return said[-1].strip() if said else "it says nothing"
        time.sleep(0.02)
    return None


def become(argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Runs `argv` in our place. Raises UserError when it cannot be."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError):  # it was closed when we began, or nobody reads it
            stream.flush()
    for signum in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and others inherit that
        signal.signal(signum, signal.SIG_DFL)
    try:
        os.execvpe(argv[0], list(argv), dict(env))
    except OSError as error:
        raise no_program(argv[0], not isinstance(error, FileNotFoundError)) from None


def no_program(name: str, is_there: bool) -> UserError:
    """As a shell has it."""
    if not is_there:
        return UserError(f"{name} was not found. Check the spelling and PATH.", 127)
    return UserError(f"{name} may not be executed. Check that it is a program (chmod +x).", 126)


@contextlib.contextmanager
def _forwarding(received: list[int], own_session: bool) -> Iterator[Callable[[Starts], subprocess.Popen]]:
    """Gives what starts the child by the function it is given. What comes before that is passed on then."""
    children: list[subprocess.Popen] = []
    early: list[int] = []
    ignored: list[int] = []
    kept = contextlib.ExitStack()

    def send(signum: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            children[0].send_signal(signum)

    def pass_on(signum: int, _frame) -> None:
        # A key of the terminal has told the command already. Where its input is another one, that is not sure: what
        # still runs after a while hears it (again).
        if signum not in BY_KEY or own_session or not _in_front():
            send(signum)
        elif not os.isatty(0):
            later = threading.Timer(STOP_GRACE_S, send, (signum,))
            later.daemon = True
            later.start()

    def forward(signum: int, frame) -> None:
        received.append(signum)
        if children:
            pass_on(signum, frame)
        else:
            early.append(signum)

    def start(begin: Starts) -> subprocess.Popen:
        children.append(begin())
        for signum in early:
            send(signum)
        # The command ignores them now as well, unless it wants to hear them all the same.
        kept.enter_context(handling(ignored, pass_on))
        return children[0]

    if threading.current_thread() is not threading.main_thread():
        yield start  # only the main thread may set handlers; ours stay what they are
        return

    ignored += filter(_is_ignored, FORWARDED)
    with kept, handling(set(FORWARDED).difference(ignored), forward):
        yield start


def _in_front() -> bool:
    """Keys of the terminal signal our process group, wherever stdin comes from."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:  # it has hung up
        return False
    finally:
        os.close(terminal)


def _stop(child: subprocess.Popen, own_session: bool) -> None:
    child.terminate()
    try:
        child.communicate(timeout=STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL) if own_session else child.kill()
        child.wait()
