# SPDX-License-Identifier: BSD-3-Clause
"""Tasks: functions of shared objects, and of Python, run by the service's executors next to the program."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from offpath.api import structs
from offpath.api.buffers import Buffer
from offpath.api.calling import argument_for, check_callable
from offpath.api.constants import TASK_ARGUMENT_MAX_BYTES, TASK_RANGES_MAX, Access, Status
from offpath.api.failures import ArgumentError, StateError, TaskError, failure
from offpath.api.library import check, library, native_file, quick, status_text
from offpath.api.operation import EndedOnce, Operation, before
from offpath.api.sharing import Report, Sharing
from offpath.api.versions import Versions
from offpath.tasks.letters import PROTOCOL, Ending, in_words, unpack

if TYPE_CHECKING:
    from offpath.api.attachment import Attachment
    from offpath.api.buffers import BufferLike

    Function = Union[str, Callable[..., Any]]


class Unchanged(NamedTuple):
    """An input that holds the same bytes in each task that is given it with this version.

    Where inputs are copied, one copy serves them all. Other bytes in the same array want another version.
    """

    array: BufferLike
    version: int = 1


class Task(EndedOnce[Any]):
    """An operation whose result is what a Python function returned; None of a native one."""

    __slots__ = ("_ending", "_report")

    def __init__(self, session: Attachment, handle: int, keep: Any, report: Report | None, timeout: float | None):
        super().__init__(session, handle, keep, None, timeout)
        self._report = report
        self._ending: Ending | None = None

    def cancel(self) -> None:
        """Nobody wants the result any more: it ends soon, by CancelledError if it was not finished before."""
        with self._session.in_use:
            check(library().offpath_task_cancel(self._handle), "cancel")

    def outcome(self) -> dict[str, Any]:
        """Of a finished task: code, signal, executor (process), run_ns, text. Raises StateError before."""
        out = structs.TaskResult(struct_bytes=sizeof(structs.TaskResult))
        with self._session.in_use:
            status = quick().offpath_task_result(self._handle, byref(out))
        if status != Status.OK:
            raise StateError("the task is under way. Wait for it.")
        return {"code": out.code, "signal": out.signal, "executor": out.executor, "run_ns": out.run_ns,
                "text": out.text.decode(errors="replace")}  # fmt: skip

    def _finish(self, status: int) -> int:
        if self._report is None or status not in (Status.OK, Status.ERR_TASK):
            return status
        try:
            self._ending = unpack(self._report.words())
            unread = "its interpreter has left none" if self._ending is None else ""
        except Exception as error:  # it is of a class that the program has not, for example
            unread = f"it cannot be read here: {in_words(error)}"
        self._report = None
        if status == Status.OK and unread:
            self._said = f"{self._text()}: there is no result ({unread}). Return plain data."
            return int(Status.ERR_TASK)
        if self._ending is not None:
            self._result = self._ending.value
        return status

    def _failure(self, status: int) -> BaseException:
        ending = self._ending
        if ending is None or ending.error is None:
            return failure(status, self._said)
        told = TaskError(f"{self._said}\n\n{ending.text}")
        if not isinstance(ending.error, Exception):  # SystemExit and the like would end this program
            return told
        ending.error.__cause__ = told
        return ending.error


class Tasks:
    """Those of a session: the functions that it knows, and how they are submitted."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str, str | None], int] = {}
        self._sharing: Sharing | None = None
        self._versions = Versions()

    def submit(
        self, session: Attachment, function: Function, arguments: Sequence[Any], options: Mapping[str, Any] | None, *,
        inputs: Sequence[BufferLike | Unchanged], inouts: Sequence[BufferLike], outputs: Sequence[BufferLike],
        after: Sequence[Operation[Any]], argument: bytes, signature: str | None, priority: int, limit: float | None,
    ) -> Task:  # fmt: skip
        given = [one if isinstance(one, Unchanged) else Unchanged(one, 0) for one in inputs]
        wrong = [one.version for one in given if not 0 <= one.version < 1 << 32]
        if wrong:
            raise ArgumentError(f"version {wrong[0]} of an input is none. Count from 1.")
        held = [Buffer(one.array, what=f"input {i}") for i, one in enumerate(given)]
        held += [Buffer(array, writable=True, what=f"inout {i}") for i, array in enumerate(inouts)]
        held += [Buffer(array, writable=True, what=f"output {i}") for i, array in enumerate(outputs)]
        access = [Access.IN] * len(inputs) + [Access.INOUT] * len(inouts) + [Access.OUT] * len(outputs)
        report: Report | None = None
        if isinstance(function, str):
            if arguments or options:
                raise ArgumentError(f"{function} takes bytes, no Python objects. Pass argument=, or inputs.")
            where, _, symbol = function.rpartition(":")
            if not where or not symbol:
                raise ArgumentError(f"{function!r} names no function. Write library.so:symbol.")
            native = self._function(session, where, symbol, signature)
        else:
            check_callable(function)
            native = self._interpreter(session)
            sharing = self._shared(session)
            report = sharing.report()
            argument = argument_for(function, arguments, options or {}, held, access, report, sharing)
            held.append(report.buffer)
            access.append(Access.REPORT)
        versions = [self._versions.number(buffer, one.version, one.array) for buffer, one in zip(held, given)]
        versions += [0] * (len(held) - len(given))
        return _submit(session, native, argument, held, access, versions, report, after, priority, limit)

    def _function(self, session: Attachment, file: str, symbol: str, signature: str | None) -> int:
        key = (file, symbol, signature)
        if key not in self._functions:
            params = structs.FunctionParams(
                struct_bytes=sizeof(structs.FunctionParams),
                library=file.encode(),
                symbol=symbol.encode(),
                signature=signature.encode() if signature else None,
            )
            out, error = c_void_p(), structs.Error()
            with session.in_use:
                status = library().offpath_function_register(session.handle, byref(params), byref(out), byref(error))
                check(status, f"{file}:{symbol}", error)
            self._functions[key] = out.value or 0
        return self._functions[key]

    def _interpreter(self, session: Attachment) -> int:
        """Of another build it may say other things to its interpreters than this package hears."""
        file = native_file("liboffpath_python.so")
        try:
            return self._function(session, file, "python", f"python {PROTOCOL}")
        except ArgumentError as error:
            if "signature" not in str(error):
                raise
            raise ArgumentError(
                f"{file}, as the executor finds it, is of another release than this package "
                f"({os.path.dirname(os.path.dirname(__file__))}). Build or install both together."
            ) from error

    def _shared(self, session: Attachment) -> Sharing:
        if self._sharing is None:
            self._sharing = Sharing(session)
        return self._sharing


def _submit(
    session: Attachment, native: int, argument: bytes, held: list[Buffer], access: list[Access], versions: list[int],
    report: Report | None, after: Sequence[Operation[Any]], priority: int, limit: float | None,
) -> Task:  # fmt: skip
    if len(argument) > TASK_ARGUMENT_MAX_BYTES or len(held) > TASK_RANGES_MAX:
        raise ArgumentError(
            f"a task takes {TASK_ARGUMENT_MAX_BYTES} bytes of arguments (these have {len(argument)}, the "
            f"function with them) and {TASK_RANGES_MAX} arrays. Pass what is longer as inputs."
        )
    if not -(1 << 31) <= priority < 1 << 31:
        raise ArgumentError(f"priority {priority} has more than 32 bits (it would become another one). Use others.")
    _check_overlap(held, access)
    ranges = (structs.TaskRange * len(held))(
        *[
            structs.TaskRange(buffer.address or 1, buffer.nbytes, int(one), version)
            for buffer, one, version in zip(held, access, versions)
        ]
    )
    handles = before(session, after, "a task")
    params = structs.TaskParams(
        struct_bytes=sizeof(structs.TaskParams), function=native, argument=argument, argument_bytes=len(argument),
        ranges=addressof(ranges) if held else None, after=addressof(handles) if len(handles) else None,
        ranges_count=len(held), after_count=len(handles), priority=priority,
        limit_ns=0 if limit is None else max(1, int(min(limit * 1e9, 1 << 62))),
    )  # fmt: skip
    out = c_void_p()
    with session.in_use:
        status = library().offpath_task_submit(session.handle, byref(params), byref(out))
    if status != Status.OK:
        raise failure(status, f"task: {status_text(status)}")
    session.hold(out.value or 0)
    return Task(session, out.value or 0, (held, report), report, None)  # a report's place is its own until the end


def _check_overlap(held: list[Buffer], access: list[Access]) -> None:
    """The library refuses it, too, without saying which."""
    ordered = sorted((buffer.address, buffer.nbytes, one) for buffer, one in zip(held, access) if buffer.nbytes)
    end = written = 0
    for address, nbytes, one in ordered:
        writes = bool(one & Access.OUT)
        if address < written or (writes and address < end):
            raise ArgumentError("arrays of a task overlap, and one is written (what comes of it?). Pass others.")
        end = max(end, address + nbytes)
        written = max(written, address + nbytes) if writes else written
