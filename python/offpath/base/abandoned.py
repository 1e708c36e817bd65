# SPDX-License-Identifier: BSD-3-Clause
"""Folders of runs that were killed before they could remove them, wherever they are.

Only the node where a run was knows that it is dead. There, the runtime folder has a record for each such folder;
src/session/abandoned.hpp says what is in it. The next run on that node, or the next service, removes the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from offpath.base.errors import UserError
from offpath.base.paths import runtime_folder

RECORD_END = ".run"
FOLDER_BEGIN = ".offpath-"


@contextlib.contextmanager
def recorded(folder: Path) -> Iterator[None]:
    """Around all that is done with the folder, from before it is made. Where no record can be kept, there is none."""
    record, descriptor = _new_record()
    if record is None:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            os.write(descriptor, f"{_boot_id()}\n{folder}\n".encode(errors="surrogateescape"))
        yield
    finally:
        if not os.path.lexists(folder):
            record.unlink(missing_ok=True)
        os.close(descriptor)


def remove() -> None:
    """What runs on this node that are dead have left."""
    with contextlib.suppress(OSError, UserError):
        for record in runtime_folder().glob(f"*{RECORD_END}"):
            with contextlib.suppress(OSError):
                _remove_if_dead(record)


def _new_record() -> tuple[Path | None, int]:
    """A file of our own with a lock on it, that goes when we go, however that is."""
    with contextlib.suppress(OSError, UserError):
        while True:
            record = runtime_folder() / f"{os.urandom(8).hex()}{RECORD_END}"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(record, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except OSError:  # nobody could tell that we live
                record.unlink(missing_ok=True)
                os.close(descriptor)
                break
            if os.fstat(descriptor).st_nlink:
                return record, descriptor
            os.close(descriptor)  # before we had the lock somebody took us for dead
    return None, -1


def _remove_if_dead(record: Path) -> None:
    descriptor = os.open(record, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where its run goes on
        boot, _, rest = os.read(descriptor, 1 << 16).decode(errors="surrogateescape").partition("\n")
        name, whole, _ = rest.partition("\n")
        if whole and boot != _boot_id():
            return  # of another node, that shares this folder with us
        folder = Path(name)
        if whole and folder.is_absolute() and folder.name.startswith(FOLDER_BEGIN) and _is_ours(folder):
            shutil.rmtree(folder)
        record.unlink()
    finally:
        os.close(descriptor)


def _is_ours(folder: Path) -> bool:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.geteuid()
    return False


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
