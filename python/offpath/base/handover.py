# SPDX-License-Identifier: BSD-3-Clause
"""The folder through which a run's ranks hand in what they recorded."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from offpath.base import abandoned, files, proc
from offpath.base.errors import UserError
from offpath.base.paths import runtime_folder

# For ranks that are not the first, where a launcher has started us once for each: nothing can be there, so what they
# record goes to a rank that has a folder.
ELSEWHERE = Path("/dev/null/rank")


def _remove_abandoned(shared: Path) -> None:
    """Folders of processes of this machine that are gone; of others nothing is known. Of these there are no records:
    the runtime folder was not to be written, or has gone with a login."""
    with contextlib.suppress(OSError):
        for entry in shared.iterdir():
            owner = re.match(rf"{re.escape(abandoned.FOLDER_BEGIN)}{_machine()}-(\d+)-", entry.name)
            if owner and not entry.name.startswith(_prefix(int(owner[1]))):
                shutil.rmtree(entry, ignore_errors=True)


def _prefix(pid: int) -> str:
    """Of the names of a process's folders: numbers are used again, so it says when that one began."""
    return f"{abandoned.FOLDER_BEGIN}{_machine()}-{pid}-{proc.began(pid) or 'gone'}-"


def _machine() -> str:
    """Equal where process numbers mean the same."""
    try:
        boot, numbers = Path("/proc/sys/kernel/random/boot_id").read_text(), os.stat("/proc/self/ns/pid").st_ino
        return f"{zlib.crc32(f'{boot}{numbers}'.encode()):08x}"
    except OSError:
        return "elsewhere"


@contextlib.contextmanager
def folder(beside: Path | None = None) -> Iterator[Path]:
    """A folder of our own, gone afterwards: in the folder of the file `beside`, else in the working directory.

    That is what the nodes of a cluster share, and one rank that sees it is enough: the others send it theirs. Where
    nothing can be made there, in the folder for temporary files, which ranks of this node see, or that for what runs.
    What runs that were killed have left on this node is removed: a scheduler may leave a run no time to do so itself.
    Raises UserError where nothing can be made anywhere.
    """
    abandoned.remove()
    with contextlib.ExitStack() as kept:
        made = None
        for place in _places(beside):
            _remove_abandoned(place)
            if made is None:
                with contextlib.suppress(OSError):
                    made = kept.enter_context(_made_in(place))
        if made is None:
            raise UserError(
                "no folder can be made here, nor for temporary files (what ranks report lies there). Set TMPDIR to one "
                "that you may write to, or run with --quiet."
            )
        yield made


def _places(beside: Path | None) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # the working directory may be gone
        yield Path.cwd() if beside is None else beside.absolute().parent
    with contextlib.suppress(OSError):
        yield Path(tempfile.gettempdir())
    with contextlib.suppress(UserError):
        yield runtime_folder()


@contextlib.contextmanager
def _made_in(place: Path) -> Iterator[Path]:
    made = place / f"{_prefix(os.getpid())}{os.urandom(4).hex()}"
    with abandoned.recorded(made):
        files.new_folder(made)
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
