# SPDX-License-Identifier: BSD-3-Clause
"""The interpreter next to an executor (frontends/python/interpreter.cpp starts it): runs calls until the executor ends.

It maps the program's shared memory itself, so arrays that lie there are not copied.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

from offpath.tasks.letters import Call, Ending, Place, failed, in_words, pack, version

_SOCKET, _BOARD = 3, 4
_SENT, _ON_BOARD = 1, 2
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
    """Stretches of programs' shared memory, and the executor's board."""

    def __init__(self) -> None:
        self._mapped: dict[tuple[int, int, int, int], mmap.mmap] = {}
        self._board: memoryview | None = None

    def on_board(self, at: int, count: int) -> memoryview:
        if self._board is None:
            self._board = memoryview(mmap.mmap(_BOARD, 0))
        return self._board[at : at + count]

    def view(self, file: str, at: int, count: int) -> memoryview:
        first = at // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        known = os.stat(file)  # its name (process, number) is that of another one once the process has attached anew
        key = (known.st_dev, known.st_ino, first, at + count - first)
        if key not in self._mapped:
            if len(self._mapped) >= _KEPT:
                self._mapped.clear()  # what is still used stays
            descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
            try:
                self._mapped[key] = mmap.mmap(descriptor, key[3], offset=first)
            finally:
                os.close(descriptor)
        return memoryview(self._mapped[key])[at - first : at - first + count]


class Worker:
    def __init__(self, line: Line):
        self._line = line
        self._memory = Memory()
        self._functions: dict[bytes, Callable[..., Any]] = {}
        self._own_path = [folder for folder in sys.path if folder]  # the executor's folder is nobody's
        self._path: tuple[str, ...] = ()

    def run_one(self) -> None:
        ranges_count, _, wanted_bytes = struct.unpack("=IIQ", self._line.exactly(16))
        call: Call = pickle.loads(self._line.exactly(wanted_bytes))
        said = [struct.unpack("=QQII", self._line.exactly(24)) for _ in range(ranges_count)]
        ranges = [
            self._sent(count, access) if where == _SENT
            else self._memory.on_board(at, count) if where == _ON_BOARD
            else self._memory.view(call.file, place.at or 0, count)
            for (count, at, access, where), place in zip(said, call.places)
        ]  # fmt: skip
        try:
            ending = Ending(value=self._call(call, ranges))
        except BaseException as error:  # also SystemExit: the next task wants an interpreter
            ending = failed(error)
        report, ending = pack(ending)
        last = in_words(ending.error).encode(errors="replace")[:250] if ending.error is not None else b""
        ranges[-1][: len(report)] = report
        self._line.say(struct.pack("=iI", 1 if ending.error is not None else 0, len(last)) + last)
        sent_back = (
            memory for memory, (_, _, access, where) in zip(ranges, said) if where == _SENT and access & _WRITES
        )
        self._line.say(*sent_back)

    def _find_as(self, path: tuple[str, ...]) -> None:
        """Modules are found where the program finds them, in its order, unless its Python is another one."""
        if path == self._path:
            return
        self._path = path
        if os.path.dirname(os.__file__) in path:
            sys.path[:] = [*path, *(folder for folder in self._own_path if folder not in path)]
        else:
            sys.path[:] = [*self._own_path, *(folder for folder in path if folder not in self._own_path)]

    def _sent(self, count: int, access: int) -> memoryview:
        return memoryview(self._line.exactly(count) if access & _READS else bytearray(count))

    def _call(self, call: Call, ranges: list[memoryview]) -> Any:
        self._find_as(call.path)
        function = self._functions.get(call.function)
        if function is None:
            if len(self._functions) >= _KEPT:
                self._functions.clear()
            function = self._functions[call.function] = _function_of(call)
        arrays = [array_of(memory, place) for place, memory in zip(call.places[:-1], ranges)]
        arguments, options = pickle.loads(call.arguments)
        return function(*arrays, *arguments, **options)


def _function_of(call: Call) -> Callable[..., Any]:
    """Where the executor is on another machine, its Python and what is installed for it may be others."""
    own = version()
    if call.version and call.version != own:
        raise RuntimeError(
            f"the function comes as code of Python {call.version}, and the executor has {own} ({sys.executable}). Put "
            "it into a module there, or name a Python of the program's version by OFFPATH_TASK_PYTHON."
        )
    try:
        function: Callable[..., Any] = pickle.loads(call.function)
    except ImportError as error:
        raise ImportError(
            f"{error} (the executor's Python is {sys.executable} on {os.uname().nodename}). Install it for that one, "
            "or put its folder there.",
            name=error.name,
        ) from error
    return function


def array_of(memory: memoryview, place: Place) -> Any:
    """A NumPy array, or where there is none a memoryview."""
    try:
        import numpy
    except ImportError:
        if isinstance(place.format, bytes):
            raise ImportError(
                f"an array of complex numbers, of structures or the like needs NumPy ({sys.executable} on "
                f"{os.uname().nodename} has none). Install it for that one."
            ) from None
        letter: Any = place.format.lstrip("@=<")
        plain = memory.cast(letter, place.shape) if memory.nbytes else memory
        return plain if place.writable else plain.toreadonly()
    kind = pickle.loads(place.format) if isinstance(place.format, bytes) else numpy.dtype(place.format)
    array = numpy.frombuffer(memory, kind).reshape(place.shape)
    array.flags.writeable = place.writable
    return array


def main() -> None:
    """Descriptor 3 is the executor, which has seen to it that the kernel ends this process with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Worker(Line(socket.socket(fileno=_SOCKET)))
    while True:
        try:
            worker.run_one()
        except (EOFError, OSError):
            return
