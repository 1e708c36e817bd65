# SPDX-License-Identifier: BSD-3-Clause
"""The `offpath` command: how it starts, and how its errors look."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Callable

from offpath.base.version import __version__


def main() -> None:
    """Runs the command line; whatever the user can put right is one line on stderr and an exit status that is not 0."""
    _forget_own_locale()
    _write_anything()
    status, written = _ended(_status), _ended(_flush)
    sys.exit(status or written)


def _ended(work: Callable[[], int]) -> int:
    try:
        return work()
    except KeyboardInterrupt:
        return 130
    except MemoryError:
        return _failed("there is not enough memory for this (limits count, too). Give it less, or more memory.")
    except OSError as error:
        return _refused(error)


def _flush() -> int:
    """Python would do it later, and say it in its own words where that fails."""
    if sys.stdout is not None:
        sys.stdout.flush()
    return 0


def _forget_own_locale() -> None:
    """Where no locale is set Python gives itself one, by a variable that programs which we start would inherit."""
    with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as given:
        if "LC_CTYPE" in os.environ and not re.search(rb"(^|\0)LC_CTYPE=", given.read()):
            del os.environ["LC_CTYPE"]


def _write_anything() -> None:
    """What the terminal's letters do not have is written in others, as names of files that are no text."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and (stream.errors == "strict" or stream.encoding.lower() != "utf-8"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stderr is not None:
        encoding, errors = sys.stderr.encoding, sys.stderr.errors
        sys.stderr = _BestEffort(sys.stderr.detach(), encoding, errors, line_buffering=True)


class _BestEffort(io.TextIOWrapper):
    """What cannot be said, on a full disk or to a reader that has gone, is left out: what it is about goes on."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def _status() -> int:
    if sys.argv[1:] == ["--version"]:  # what scripts ask often, and what needs nothing else
        print(f"offpath {__version__}")
        return 0
    import typer

    from offpath.base import processes
    from offpath.base.errors import UserError
    from offpath.cli.commands import app

    processes.end_in_order()
    # What typer raises of wrong words. Its name and place differ from version to version, so a public heir leads to it:
    # it is the one right below Exception.
    wrong_words = [kind for kind in typer.BadParameter.__mro__ if issubclass(kind, Exception)][-2]
    try:
        status = app(sys.argv[1:] or ["--help"], standalone_mode=False, prog_name="offpath")
    except UserError as error:
        return _failed(str(error), error.exit_code)
    except wrong_words as error:
        # No message where help was shown, as nothing was asked for.
        return _failed(_usage_line(error), 2) if error.format_message() else 2
    except typer.Abort:
        return 130
    return status if isinstance(status, int) else 0


def _refused(error: OSError) -> int:
    from offpath.base.errors import DISK_FULL, write_error

    if error.filename is None and sys.stdout is sys.__stdout__ is not None:  # it may have been refused, and would again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return 1
    if write_error(error.errno) == DISK_FULL:
        named = f"{error.filename} cannot be written ({DISK_FULL})"
        unnamed = f"{DISK_FULL} (what was being written is not whole)"
        return _failed(f"{unnamed if error.filename is None else named}. Make room and run it again.")
    if isinstance(error, FileNotFoundError) and error.filename is None:  # by os.getcwd()
        return _failed("the working directory has gone (names of files begin there). Change to another one.")
    if isinstance(error, FileNotFoundError) and os.sep not in str(error.filename):  # perhaps a program that we run
        return _failed(f"{error.filename} was not found. Install it, correct PATH, or give another name.")
    if error.filename is not None:
        return _failed(f"{error.filename} cannot be used ({error.strerror}). Give another name, or correct that.")
    return _failed(f"{error.strerror or error} (the system says so). Where that is a limit: ulimit -a shows them.")


def _failed(text: str, status: int = 1) -> int:
    from offpath.base import console

    console.fail(text)
    return status


def _usage_line(error) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "offpath"
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message}{'' if message.endswith('?') else '.'} See: {command} --help"
