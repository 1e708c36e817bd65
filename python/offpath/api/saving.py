# SPDX-License-Identifier: BSD-3-Clause
"""Files that the service writes while the program goes on.

What had a file's name keeps it until all of the new one is there. Whatever goes wrong at the service costs time only:
this process writes then.
"""

from __future__ import annotations

import io
import itertools
import os
import threading
import warnings
from ctypes import byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any, Union

from offpath.api import structs
from offpath.api.buffers import Buffer
from offpath.api.constants import Status
from offpath.api.failures import ArgumentError, WaitTimeout
from offpath.api.library import library
from offpath.api.operation import EndedOnce

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from offpath.api.attachment import Attachment
    from offpath.api.buffers import BufferLike

    Path = Union[str, os.PathLike[str]]

_numbers = itertools.count()
_places = threading.Lock()


class Saving(EndedOnce[str]):
    """An operation whose result is the file's name. One that nobody waits for is done when its session is closed."""

    __slots__ = ("_at", "_error", "_is_old", "_number", "_part", "_path", "_rights", "_takes_place")

    def __init__(self, session: Attachment, path: Path, head: bytes, body: BufferLike):
        super().__init__(session, 0, None, os.fspath(path), None)
        self._path = os.path.realpath(path)
        if os.path.exists(self._path) and not os.path.isfile(self._path):
            raise ArgumentError(f"{path} is no plain file (a file would take its place). Give the name of a file.")
        held = Buffer(body, what="what is saved")
        self._at = len(head)
        self._error: OSError | None = None
        self._is_old = self._takes_place = False
        # Those of the file whose place it takes: what only its owner may read stays so.
        self._rights = os.stat(self._path).st_mode & 0o7777 if os.path.exists(self._path) else None
        look_at_all(session, 0)  # those that are done give up their memory
        try:
            self._handle = self._begin(session, head, held)
        except OSError as error:
            raise self._named(error) from None
        self._keep = held
        if self._handle:
            session.hold(self._handle)
            session.savings[self] = None
        else:
            self._status = self._finish(int(Status.ERR_SERVICE_LOST))
            self._keep = None

    def _begin(self, session: Attachment, head: bytes, held: Buffer) -> int:
        descriptor = self._make_part()
        try:
            _write(descriptor, memoryview(head), 0)
            return _post(session, descriptor, held, len(head)) if held.nbytes else 0
        except BaseException:
            os.unlink(self._part)
            raise
        finally:
            os.close(descriptor)

    def _make_part(self) -> int:
        folder, name = os.path.split(self._path)
        name = os.fsdecode(os.fsencode(name)[:200])  # longer ones have no room for more
        while True:
            self._number = next(_numbers)
            self._part = os.path.join(folder, f".{name}.{os.getpid()}.{self._number}.part")
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            try:
                return os.open(self._part, flags, 0o666 if self._rights is None else 0o600)
            except FileExistsError:  # of a killed program that had this number: in containers they are often the same
                continue

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, self._path)

    def _finish(self, status: int) -> int:
        """Puts it on the disk, which takes as long as the disk does. Where Ctrl-C comes in between, this is called once
        more."""
        try:
            if not self._has_place():
                self._complete(status)
            self._take_place()
            status = int(Status.OK)
        except OSError as error:
            self._error, self._takes_place = self._error or self._named(error), False
            if os.path.exists(self._part):
                os.unlink(self._part)
            status = int(Status.ERR_FILE)
        self._session.savings.pop(self, None)
        return status

    def _complete(self, status: int) -> None:
        # Opened in any case: network file systems send what others are to see when a writer closes.
        descriptor = os.open(self._part, os.O_WRONLY | os.O_CLOEXEC)
        try:
            if status != Status.OK:  # also what was refused: what the file system says now is the error
                _write(descriptor, memoryview(self._keep.owner).cast("B"), self._at)
            if self._rights is not None:
                os.fchmod(descriptor, self._rights)
            os.fsync(descriptor)  # before the old file goes
        finally:
            os.close(descriptor)

    def _has_place(self) -> bool:
        return self._takes_place and not os.path.exists(self._part)

    def _take_place(self) -> None:
        """An older one of the same name that ends later does not."""
        with _places:
            if not self._has_place():
                self._takes_place = True  # before it does
                if self._is_old:
                    os.unlink(self._part)
                    return
                os.replace(self._part, self._path)
            for other in list(self._session.savings):
                other._is_old = other._is_old or (other._path == self._path and other._number < self._number)

    def _failure(self, status: int) -> BaseException:
        return self._error or super()._failure(status)


def save(session: Attachment, path: Path, array: ArrayLike) -> Saving:
    """As numpy.save(), but for the file's name, to which nothing is added. Raises OSError, ArgumentError."""
    import numpy

    known = numpy.asanyarray(array)
    if known.dtype.hasobject:
        raise ArgumentError(f"dtype {known.dtype} holds Python objects (whose memory is the program's). Save numbers.")
    head: Any = io.BytesIO()
    described = numpy.lib.format.header_data_from_array_1_0(known)
    try:
        numpy.lib.format.write_array_header_1_0(head, described)
    except ValueError:  # the names of many fields
        head = io.BytesIO()
        numpy.lib.format.write_array_header_2_0(head, described)
    data: Any = numpy.ascontiguousarray(known.T if described["fortran_order"] else known)
    # Dates, for example, have no format that buffers know.
    return Saving(session, path, head.getvalue(), data.reshape(-1).view(numpy.uint8) if data.nbytes else b"")


def look_at_all(session: Attachment, timeout: float | None) -> None:
    """Waits so long for each; says what went wrong of those that nobody asks any more."""
    for saving in list(session.savings):
        try:
            saving.wait(timeout)
        except WaitTimeout:
            continue
        except Exception as error:
            warnings.warn(f"not saved: {error}", RuntimeWarning, stacklevel=3)


def _post(session: Attachment, descriptor: int, held: Buffer, at: int) -> int:
    """The operation that writes it; 0: this process has to."""
    file, out = c_void_p(), c_void_p()
    with session.in_use:
        if library().offpath_file_open(session.handle, descriptor, byref(file), None) != Status.OK:
            return 0
        transfer = structs.FileTransfer(
            struct_bytes=sizeof(structs.FileTransfer),
            memory=structs.Block(0, 0, held.address, held.nbytes, 0),
            offset_bytes=at,
        )
        status = library().offpath_file_write(file, byref(transfer), byref(out))
        library().offpath_file_close(file)
    return (out.value or 0) if status == Status.OK else 0


def _write(descriptor: int, data: memoryview, at: int) -> None:
    while data:
        count = os.pwrite(descriptor, data, at)
        data, at = data[count:], at + count
