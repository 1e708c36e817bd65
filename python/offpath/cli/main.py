# SPDX-License-Identifier: BSD-3-Clause
"""The `offpath` command: how it starts, and how its errors look."""

from __future__ import annotations

import contextlib
import os
import re
import sys

from offpath.base.version import __version__


def main() -> None:
    """Runs the command line; whatever the user can put right is one line on stderr and an exit status that is not 0."""
    if sys.argv[1:] == ["--version"]:  # what scripts ask often, and what needs nothing else
        print(f"offpath {__version__}")
        return
    _forget_own_locale()
    _write_anything()
    if not sys.argv[1:]:
        sys.argv.append("--help")
    sys.exit(_status())


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


def _status() -> int:
    import typer

    from offpath.base import console
    from offpath.base.errors import DISK_FULL, UserError, write_error
    from offpath.cli.commands import app

    # What typer raises of wrong words. Its name and place differ from version to version, so a public heir leads to it:
    # it is the one right below Exception.
    wrong_words = [kind for kind in typer.BadParameter.__mro__ if issubclass(kind, Exception)][-2]
    try:
        status = app(standalone_mode=False, prog_name="offpath")
    except UserError as error:
        console.fail(str(error))
        return error.exit_code
    except wrong_words as error:
        if error.format_message():  # none where help was shown, as nothing was asked for
            console.fail(_usage_line(error))
        return 2
    except MemoryError:
        console.fail("there is not enough memory for this (limits count, too). Give it less, or more memory.")
        return 1
    except OSError as error:
        if write_error(error.errno) == DISK_FULL:
            console.fail(f"{DISK_FULL} (what was being written is not whole). Make room and run it again.")
        elif error.filename is not None:
            console.fail(f"{error.filename} cannot be used ({error.strerror}). Give another name, or correct that.")
        else:
            raise
        return 1
    except (KeyboardInterrupt, typer.Abort):
        return 130
    return status if isinstance(status, int) else 0


def _usage_line(error) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "offpath"
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message}{'' if message.endswith('?') else '.'} See: {command} --help"
