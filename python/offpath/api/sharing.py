# SPDX-License-Identifier: BSD-3-Clause
"""Where the session's shared memory is: for an interpreter next to an executor, which maps it, too."""

from __future__ import annotations

import os
import threading
from ctypes import byref, c_int, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

from offpath.api.buffers import Buffer
from offpath.api.constants import Status
from offpath.api.failures import OffpathError
from offpath.api.library import library
from offpath.api.memory import lend
from offpath.tasks.letters import REPORT_BYTES

if TYPE_CHECKING:
    from offpath.api.attachment import Attachment

_REPORTS = 64


class Sharing:
    """file: its name for other processes of this user. Without shared memory nothing lies there."""

    def __init__(self, session: Attachment):
        self.file = ""
        self._begin = self._bytes = 0
        self._reports: Any = None
        self._free: list[int] = []
        self._lock = threading.Lock()
        first, descriptor, offset = c_void_p(), c_int(-1), c_uint64()
        with session.in_use:
            if not library().offpath_session_shares_memory(session.handle):  # all is copied to another machine
                return
            if library().offpath_memory_allocate(session.handle, 1, byref(first)) != Status.OK or not first.value:
                return
            status = library().offpath_memory_file(session.handle, first, byref(descriptor), byref(offset))
        if status != Status.OK:
            return
        self.file = f"/proc/{os.getpid()}/fd/{descriptor.value}"
        self._begin = first.value - offset.value
        self._bytes = os.fstat(descriptor.value).st_size
        try:
            self._reports = lend(session, _REPORTS * REPORT_BYTES, "u1")
        except (OffpathError, ImportError):
            return
        self._free = list(range(_REPORTS))

    def offset_of(self, buffer: Buffer) -> int | None:
        """In the file; None: it does not lie there."""
        at = buffer.address - self._begin
        return at if buffer.nbytes and 0 < at and at + buffer.nbytes <= self._bytes else None

    def report(self) -> Report:
        with self._lock:
            index = self._free.pop() if self._free else -1
        if index < 0:
            return Report(None, -1, bytearray(REPORT_BYTES))
        memory = self._reports[index * REPORT_BYTES : (index + 1) * REPORT_BYTES]
        memory[:8] = 0
        return Report(self._free, index, memory)


class Report:
    """Where an interpreter says how a call ended. Shared memory shows it also where the task has failed."""

    def __init__(self, free: list[int] | None, index: int, memory: Any):
        self._free, self._index = free, index
        self.buffer = Buffer(memory, writable=True)

    def words(self) -> bytes:
        return bytes(memoryview(self.buffer.owner))

    def __del__(self) -> None:
        if self._free is not None:
            self._free.append(self._index)
