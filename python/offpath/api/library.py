# SPDX-License-Identifier: BSD-3-Clause
"""liboffpath.so.0, found and loaded once, its functions with their types.

Two handles: `quick` keeps the interpreter's lock, for what is a load or a short copy; `library` gives it away, for what
may take long. Waiting is always done by `library`.
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

from offpath.api import structs
from offpath.api.constants import Status
from offpath.api.failures import NoServiceError, failure
from offpath.base.errors import UserError
from offpath.base.paths import paths

_OUT = POINTER(c_void_p)
_ERROR = POINTER(structs.Error)
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "offpath_status_string": (c_char_p, [c_int]),
    "offpath_session_attach": (c_int, [POINTER(structs.AttachParams), _OUT, _ERROR]),
    "offpath_session_detach": (None, [c_void_p]),
    "offpath_session_address": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "offpath_session_shares_memory": (c_int, [c_void_p]),
    "offpath_session_counters": (c_int, [c_void_p, POINTER(structs.SessionCounters)]),
    "offpath_session_time_operations": (None, [c_void_p, c_int]),
    "offpath_session_sleep": (c_int, [c_void_p, c_uint32, c_uint64]),
    "offpath_team_create": (c_int, [c_void_p, POINTER(structs.TeamParams), _OUT, _ERROR]),
    "offpath_team_destroy": (None, [c_void_p]),
    "offpath_collective": (c_int, [c_void_p, POINTER(structs.Collective), _OUT]),
    "offpath_alltoall": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, _OUT]),
    "offpath_alltoallv": (c_int, [c_void_p] * 7 + [_OUT]),
    "offpath_op_wait": (c_int, [c_void_p, c_uint64]),
    "offpath_op_free": (None, [c_void_p]),
    "offpath_op_fd": (c_int, [c_void_p, POINTER(c_int)]),
    "offpath_memory_lend": (c_int, [c_void_p, c_uint64, c_uint64, _OUT]),
    "offpath_memory_take_back": (c_int, [c_void_p]),
    "offpath_window_create": (c_int, [c_void_p, POINTER(structs.WindowParams), _OUT, _ERROR]),
    "offpath_window_destroy": (None, [c_void_p]),
    "offpath_remote": (c_int, [c_void_p, POINTER(structs.Remote), _OUT]),
    "offpath_window_flush": (c_int, [c_void_p, c_uint64]),
    "offpath_memory_allocate": (c_int, [c_void_p, c_uint64, _OUT]),
    "offpath_memory_file": (c_int, [c_void_p, c_void_p, POINTER(c_int), POINTER(c_uint64)]),
    "offpath_function_register": (c_int, [c_void_p, POINTER(structs.FunctionParams), _OUT, _ERROR]),
    "offpath_task_submit": (c_int, [c_void_p, POINTER(structs.TaskParams), _OUT]),
    "offpath_task_cancel": (c_int, [c_void_p]),
    "offpath_team_after": (c_int, [c_void_p, c_void_p, c_uint32]),
    "offpath_file_open": (c_int, [c_void_p, c_int, _OUT, _ERROR]),
    "offpath_file_close": (None, [c_void_p]),
    "offpath_file_write": (c_int, [c_void_p, POINTER(structs.FileTransfer), _OUT]),
}
_QUICK: dict[str, tuple[Any, list[Any]]] = {
    "offpath_op_test": (c_int, [c_void_p]),
    "offpath_op_describe": (None, [c_void_p, c_char_p, c_size_t]),
    "offpath_task_result": (c_int, [c_void_p, POINTER(structs.TaskResult)]),
    "offpath_op_times": (c_int, [c_void_p, POINTER(structs.OpTimes)]),
    "offpath_session_alive": (c_int, [c_void_p]),
    "offpath_session_events": (c_uint32, [c_void_p]),
    "offpath_team_nodes": (c_uint32, [c_void_p]),
    "offpath_team_broken": (c_int, [c_void_p]),
    "offpath_team_lost": (None, [c_void_p, POINTER(c_uint8)]),
}


@functools.cache
def library() -> ctypes.CDLL:
    """Raises NoServiceError where the library is not built or installed."""
    loaded = ctypes.CDLL(_file())
    _declare(loaded, _SIGNATURES)
    return loaded


@functools.cache
def quick() -> ctypes.PyDLL:
    loaded = ctypes.PyDLL(_file())
    _declare(loaded, _QUICK)
    return loaded


def _declare(loaded: ctypes.CDLL, signatures: dict[str, tuple[Any, list[Any]]]) -> None:
    for name, (result, arguments) in signatures.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments


def _file() -> str:
    return native_file("liboffpath.so.0")


def native_file(name: str) -> str:
    """A library of the build tree or installation. Raises NoServiceError where it is missing."""
    try:
        file = paths().lib / name
    except UserError as error:
        raise NoServiceError(str(error)) from None
    if not os.path.exists(file):
        raise NoServiceError(
            f"{file} does not exist (it belongs to what attaches to the service). Build or install it, or set "
            "OFFPATH_PREFIX to where it is."
        )
    return str(file)


def status_text(status: int) -> str:
    text: bytes = library().offpath_status_string(status)
    return text.decode()


def check(status: int, what: str, error: structs.Error | None = None) -> None:
    """Raises what the status says, with the library's text where it has one."""
    if status == Status.OK:
        return
    said = error.text.decode(errors="replace") if error is not None and error.text else status_text(status)
    raise failure(status, f"{what}: {said}")
