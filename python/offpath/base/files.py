# SPDX-License-Identifier: BSD-3-Clause
"""Files and folders: those that we write are nobody else's, and looked at before anything long begins; of one that
cannot be read, or holds something else, one line says so."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from offpath.base.errors import UserError, write_error

Taken = TypeVar("Taken")


def new_folder(folder: Path) -> None:
    """For us only, who can use and remove it whatever the umask. Raises FileExistsError."""
    folder.mkdir(mode=0o700)
    folder.chmod(0o700)


def private_folder(folder: Path) -> Path:
    """The folder, made if it is not there. Raises UserError unless it is one, no link, that only we can use:
    what lies in it is believed."""
    try:
        with contextlib.suppress(FileExistsError):
            new_folder(folder)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be used ({error.strerror}; sockets and records live there). Set OFFPATH_RUNTIME_DIR."
        ) from None
    status = os.fstat(descriptor)
    os.close(descriptor)
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UserError(
            f"{folder} is not a folder only its owner can use (others could pose as a service). Remove it, or set "
            "OFFPATH_RUNTIME_DIR."
        )
    return folder


def stays_in(parent: Path) -> bool:
    """Nobody else may move what lies there out of the way, and put something else in its place."""
    try:
        status = parent.stat()
    except OSError:
        return False
    return status.st_uid in (os.getuid(), 0) and (not status.st_mode & 0o022 or bool(status.st_mode & stat.S_ISVTX))


def readable(file: Path) -> bool:
    """Is a file that we can read. HOME may be another user's, where we may not even look."""
    return os.path.isfile(file) and os.access(file, os.R_OK)


def new_file(path: Path) -> IO[bytes]:
    """A file that was not there before, for us only; what was there is removed, not followed."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def new_secret(path: Path) -> None:
    """A random one that only its owner can read. It is there whole, or not at all. Raises FileExistsError."""
    if path.exists():  # perhaps where nothing can be written any more
        raise FileExistsError(path)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.") as file:
        file.write(os.urandom(32).hex() + "\n")
        file.flush()
        os.link(file.name, path)


def writable_file(path: Path | None, option: str) -> None:
    """Raises UserError before a long measurement rather than after it."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{option} {path} cannot be written ({error.strerror}). Give another file.") from None
    if path.is_dir() or (path.exists() and not os.access(path, os.W_OK)):
        raise UserError(f"{option} {path} cannot be written (no permission, or a folder). Give another file.")
    if not path.exists() and (why := no_room(path.parent)):
        raise UserError(f"{option} {path} cannot be written ({why}). Give another file.")


def no_room(folder: Path) -> str:
    """Why nothing can be written there now; empty: it can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return write_error(error.errno)
    return ""


def read_text(file: Path, what: str, cure: str) -> str:
    """Raises UserError, one line, where it cannot be read. `what`: it should be one; `cure`: what to do then."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"the {what} {file} cannot be read ({error.strerror}). {cure}") from None
    except UnicodeDecodeError:
        raise UserError(f"{file} is no {what} (it is not text). {cure}") from None


def read_json(file: Path, what: str, cure: str, take: Callable[[Any], Taken]) -> Taken:
    """What `take` makes of it. Whatever it raises of other content is one line as well; words of its own are in a
    ValueError."""
    text = read_text(file, what, cure)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f"{file} is no {what}, or was cut short (it is not JSON). {cure}") from None
    try:
        return take(found)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        own = {ValueError: str(error), KeyError: f"it has no {error}"}
        why = own.get(type(error), "it holds something else")
        raise UserError(f"{file} is no {what} ({why}). {cure}") from None


def json_if_any(file: Path) -> dict | None:
    """The object in it; None where there is none, or none yet."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads(file.read_text())
        return found if isinstance(found, dict) else None
    return None


def of_format(found: Any, name: str, version: int) -> dict:
    """The same, for take() of read_json(). Raises ValueError for another format, or version."""
    if not isinstance(found, dict) or found.get("format") != name:
        raise ValueError(f"its format is not {name}")
    if found.get("version") != version:
        raise ValueError(f"it has version {found.get('version')}, and only {version} is known")
    return found


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """What is written there takes the place of what was there once it is whole. Links and rights stay; what is no file,
    such as /dev/stdout, or is in a folder where nothing can be made, is written as it is. Its OSErrors name `path`."""
    before = path.stat() if path.exists() else None
    target = Path(os.path.realpath(path))
    as_it_is = before is not None and not (_is_named_once(path) and os.access(target.parent, os.W_OK))
    fresh = path if as_it_is else target.with_name(f".offpath-{os.urandom(8).hex()}")
    try:
        with fresh.open("w" if as_it_is else "x", encoding="utf-8", errors="backslashreplace") as file:
            yield file
        if not as_it_is:
            if before is not None:
                fresh.chmod(stat.S_IMODE(before.st_mode))
                with contextlib.suppress(PermissionError):
                    os.chown(fresh, before.st_uid, before.st_gid)
            fresh.replace(target)
    except BaseException as error:
        if not as_it_is:
            fresh.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _is_named_once(path: Path) -> bool:
    """A file, that is not named by a descriptor that has it open, as in /dev/stdout."""
    folder = os.path.realpath(path.parent)
    return path.is_file() and folder != "/dev" and not folder.startswith("/proc/")


def write_text(file: Path, text: str) -> None:
    with replacing(file) as fresh:
        fresh.write(text)


def write_json(file: Path, value: dict) -> None:
    write_text(file, json.dumps(value, indent=1) + "\n")
