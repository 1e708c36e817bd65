# SPDX-License-Identifier: BSD-3-Clause
"""The interpreter next to an executor (frontends/python/interpreter.cpp starts it): runs calls until the executor ends.

It maps the program's shared memory itself, so arrays that lie there are not copied.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

from offpath.tasks.letters import REPORT_BYTES, Call, Ending, Place, failed, pack

_SOCKET = 3
_PR_SET_PDEATHSIG = 1
_READS, _WRITES = 1, 2
_KEPT = 64  # mappings, functions


class Line:
    def __init__(self, connection: socket.socket):
        self._socket = connection

    def exactly(self, count: int) -> bytearray:
        got = bytearray(count)
        view, at = memoryview(got), 0
        while at < count:
            received = self._socket.recv_into(view[at:])
            if received == 0:
                raise EOFError
            at += received
        return got

    def say(self, *parts: Any) -> None:
        for part in parts:
            self._socket.sendall(part)


class Memory:
    """Stretches of programs' shared memory."""

    def __init__(self) -> None:
        self._mapped: dict[tuple[str, int, int], mmap.mmap] = {}

    def view(self, file: str, at: int, count: int) -> memoryview:
        first = at // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        key = (file, first, at + count - first)
        if key not in self._mapped:
            if len(self._mapped) >= _KEPT:
                self._mapped.clear()  # what is still used stays
            descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
            try:
                self._mapped[key] = mmap.mmap(descriptor, key[2], offset=first)
            finally:
                os.close(descriptor)
        return memoryview(self._mapped[key])[at - first : at - first + count]


class Worker:
    def __init__(self, line: Line):
        self._line = line
        self._memory = Memory()
        self._functions: dict[bytes, Callable[..., Any]] = {}

    def run_one(self) -> None:
        ranges_count, _, wanted_bytes = struct.unpack("=IIQ", self._line.exactly(16))
        call: Call = pickle.loads(self._line.exactly(wanted_bytes))
        said = [struct.unpack("=QII", self._line.exactly(16)) for _ in range(ranges_count)]
        ranges: list[tuple[int, int, bytearray | None]] = []
        for count, access, follows in said:
            sent = None
            if follows:
                sent = self._line.exactly(count) if access & _READS else bytearray(count)
            ranges.append((count, access, sent))
        try:
            ending = Ending(value=self._call(call, ranges))
        except BaseException as error:  # also SystemExit: the next task wants an interpreter
            ending = failed(error)
        report, ending = pack(ending)
        last = f"{type(ending.error).__name__}: {ending.error}"[:250].encode() if ending.error is not None else b""
        place, sent = call.places[-1], ranges[-1][2]
        into = memoryview(sent) if sent is not None else self._memory.view(call.file, place.at or 0, REPORT_BYTES)
        into[: len(report)] = report
        self._line.say(struct.pack("=iI", 1 if ending.error is not None else 0, len(last)) + last)
        self._line.say(*(sent for _, access, sent in ranges if sent is not None and access & _WRITES))

    def _call(self, call: Call, ranges: list[tuple[int, int, bytearray | None]]) -> Any:
        for folder in call.path:
            if folder not in sys.path:
                sys.path.append(folder)
        function = self._functions.get(call.function)
        if function is None:
            if len(self._functions) >= _KEPT:
                self._functions.clear()
            function = self._functions[call.function] = pickle.loads(call.function)
        arrays = []
        for place, (count, _, sent) in zip(call.places[:-1], ranges):
            memory = memoryview(sent) if sent is not None else self._memory.view(call.file, place.at or 0, count)
            arrays.append(array_of(memory, place))
        arguments, options = pickle.loads(call.arguments)
        return function(*arrays, *arguments, **options)


def array_of(memory: memoryview, place: Place) -> Any:
    """A NumPy array, or where there is none a memoryview."""
    try:
        import numpy
    except ImportError:
        letter: Any = place.format.lstrip("@=<")
        plain = memory.cast(letter, place.shape) if memory.nbytes else memory
        return plain if place.writable else plain.toreadonly()
    array = numpy.frombuffer(memory, numpy.dtype(place.format)).reshape(place.shape)
    array.flags.writeable = place.writable
    return array


def main() -> None:
    """Descriptor 3 is the executor; it ends with that one, whatever it does then."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Worker(Line(socket.socket(fileno=_SOCKET)))
    while True:
        try:
            worker.run_one()
        except (EOFError, OSError):
            return
