# SPDX-License-Identifier: BSD-3-Clause
"""The structs of include/offpath/offpath.h. Pointers are addresses (c_void_p): they are filled in from integers."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_char_p, c_double, c_int, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

from offpath.api.constants import TEAM_ID_BYTES, TOKEN_BYTES
from offpath.base import words


def _fields(*rows: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Of rows of a type and the names of those that have it."""
    return [(name, kind) for kind, *names in rows for name in names]


class Error(ctypes.Structure):
    _fields_ = [("status", c_int), ("text", c_char * 252)]


class AttachParams(ctypes.Structure):
    _fields_ = _fields(
        (c_uint32, "struct_bytes", "flags"),
        (c_uint8 * TOKEN_BYTES, "job_token"),
        (c_char_p, "service_cores"),
        (c_uint32, "node_sessions_count", "reserved"),
    )


_TYPES: dict[str, Any] = {"uint32_t": c_uint32, "uint64_t": c_uint64, "double": c_double}


class SessionCounters(ctypes.Structure):
    _fields_ = [("struct_bytes", c_uint32), *((row["name"], _TYPES[row["type"]]) for row in words.rows("counters"))]


class TeamParams(ctypes.Structure):
    _fields_ = _fields(
        (c_uint32, "struct_bytes", "rank", "size", "address_stride_bytes"),
        (c_uint8 * TEAM_ID_BYTES, "id"),
        (c_void_p, "addresses"),
        (c_char_p, "compress"),
    )


class Block(ctypes.Structure):
    _fields_ = _fields((c_uint32, "peer", "tag"), (c_void_p, "address"), (c_uint64, "bytes"), (c_uint32, "layout"))


class Collective(ctypes.Structure):
    _fields_ = _fields(
        (c_uint32, "struct_bytes"),
        (c_int, "kind", "algorithm"),
        (c_uint32, "root"),
        (c_int, "op", "element"),
        (c_void_p, "send", "recv"),
        (c_uint32, "send_count", "recv_count"),
        (c_void_p, "counts_bytes", "layouts"),
        (c_uint32, "layouts_count"),
        (c_int, "ends"),
    )


class WindowParams(ctypes.Structure):
    _fields_ = _fields((c_uint32, "struct_bytes", "flags"), (c_uint64, "id"), (c_void_p, "base"), (c_uint64, "bytes"))


class Remote(ctypes.Structure):
    _fields_ = _fields(
        (c_uint32, "struct_bytes"),
        (c_int, "kind"),
        (c_uint32, "target"),
        (c_int, "op", "element"),
        (c_uint32, "target_layout"),
        (c_uint64, "target_offset", "target_bytes"),
        (Block, "send", "result"),
        (c_void_p, "layouts"),
        (c_uint32, "layouts_count", "flags"),
        (c_void_p, "signal"),
    )


class OpTimes(ctypes.Structure):
    _fields_ = _fields(
        (c_uint32, "struct_bytes", "last_peer"),
        (c_uint64, "posted_ns", "started_ns", "first_byte_ns", "done_ns"),
    )


class FunctionParams(ctypes.Structure):
    _fields_ = _fields((c_uint32, "struct_bytes", "flags"), (c_char_p, "library", "symbol", "signature"))


class TaskRange(ctypes.Structure):
    _fields_ = [("address", c_void_p), ("bytes", c_uint64), ("access", c_uint32), ("version", c_uint32)]


class TaskParams(ctypes.Structure):
    _fields_ = _fields(
        (c_uint32, "struct_bytes", "flags"),
        (c_void_p, "function"),
        (c_char_p, "argument"),
        (c_uint64, "argument_bytes"),
        (c_void_p, "ranges", "after"),
        (c_uint32, "ranges_count", "after_count"),
        (c_int32, "priority"),
        (c_uint32, "reserved"),
        (c_uint64, "limit_ns", "cost_ns", "deadline_ns"),
    )


class TaskResult(ctypes.Structure):
    _fields_ = _fields(
        (c_uint32, "struct_bytes"),
        (c_int32, "code", "signal"),
        (c_uint32, "executor"),
        (c_uint64, "run_ns"),
        (c_char * 256, "text"),
    )


class FileTransfer(ctypes.Structure):
    _fields_ = _fields(
        (c_uint32, "struct_bytes", "flags"),
        (Block, "memory"),
        (c_uint64, "offset_bytes", "skip_bytes"),
        (c_void_p, "layouts", "after"),
        (c_uint32, "layouts_count", "layout", "after_count", "reserved"),
    )
