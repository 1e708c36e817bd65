# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the library as exceptions. Texts read "problem (why it matters). What to do"."""

from __future__ import annotations

from offpath.api.constants import Status


class OffpathError(Exception):
    """An error of Offpath; `status` is the library's number for it."""

    status = Status.ERR_INTERNAL


class ArgumentError(OffpathError, ValueError):
    """A parameter is outside its documented range."""

    status = Status.ERR_ARGUMENT


class StateError(OffpathError, RuntimeError):
    """The object cannot do this now: closed, or of the parent of a forked process."""

    status = Status.ERR_STATE


class NoServiceError(OffpathError):
    """The service could not be reached or started."""

    status = Status.ERR_NO_SERVICE


class NoMemoryError(OffpathError, MemoryError):
    """Shared memory, or room for descriptions of operations, is exhausted."""

    status = Status.ERR_NO_MEMORY


class AccessError(OffpathError):
    """The service may not access this process's memory."""

    status = Status.ERR_PERMISSION


class LostError(OffpathError):
    """What was needed has died; see its subclasses."""


class ServiceLostError(LostError):
    """The own service died after it had begun the operation."""

    status = Status.ERR_SERVICE_LOST


class PeerLostError(LostError):
    """A member's service or process died after the operation had begun there."""

    status = Status.ERR_PEER_LOST


class NotStartedError(LostError):
    """The operation had no effect; it may be done by other means if all members do."""

    status = Status.ERR_NOT_STARTED


class TruncatedError(OffpathError):
    """A peer sent more bytes than this member accepts."""

    status = Status.ERR_TRUNCATED


class ShortError(OffpathError):
    """A peer sent fewer bytes than this member expects."""

    status = Status.ERR_SHORT


class MemoryFaultError(OffpathError):
    """A buffer is not accessible memory."""

    status = Status.ERR_MEMORY_FAULT


class WindowRangeError(OffpathError, IndexError):
    """The bytes lie outside what the target's window exposes."""

    status = Status.ERR_RANGE


class DamagedError(OffpathError):
    """What arrived of a compressed block is not what its sender had."""

    status = Status.ERR_DAMAGED


class TaskError(OffpathError):
    """The function of a task failed or crashed. An exception of a Python function comes back as itself, with this as
    its cause, which has the traceback there."""

    status = Status.ERR_TASK


class DependenceError(OffpathError):
    """A task was not run, as an operation that it comes after has failed."""

    status = Status.ERR_DEPENDENCE


class CancelledError(OffpathError):
    """A task was cancelled."""

    status = Status.ERR_CANCELLED


class FileError(OffpathError):
    """The file system refuses to read or write, or a file became shorter while it was read."""

    status = Status.ERR_FILE


class WaitTimeout(OffpathError, TimeoutError):
    """It took longer than it may; what is waited for goes on."""

    status = Status.IN_PROGRESS


_ALL = [each for each in list(vars().values()) if isinstance(each, type) and issubclass(each, OffpathError)]
_CLASSES: dict[int, type[OffpathError]] = {
    int(each.status): each for each in _ALL if each.status < 0 and each.status != Status.ERR_INTERNAL
}


def failure(status: int, text: str) -> OffpathError:
    """The exception for a status of the library, with its text."""
    return _CLASSES.get(status, OffpathError)(text)
