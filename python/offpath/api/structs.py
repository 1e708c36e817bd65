# SPDX-License-Identifier: BSD-3-Clause
"""The structs of include/offpath/offpath.h. Pointers are addresses (c_void_p): they are filled in from integers."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_char_p, c_double, c_int, c_int32, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

from offpath.api.constants import TEAM_ID_BYTES, TOKEN_BYTES
from offpath.base import words


class Error(ctypes.Structure):
    _fields_ = [("status", c_int), ("text", c_char * 252)]


class AttachParams(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("flags", c_uint32),
        ("job_token", c_uint8 * TOKEN_BYTES),
        ("service_cores", c_char_p),
        ("node_sessions_count", c_uint32),
        ("reserved", c_uint32),
    ]


_TYPES: dict[str, Any] = {"uint32_t": c_uint32, "uint64_t": c_uint64, "double": c_double}


class Counters(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        *((row["name"], _TYPES[row["type"]]) for row in words.rows("counters")),
    ]


class TeamParams(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("rank", c_uint32),
        ("size", c_uint32),
        ("address_stride_bytes", c_uint32),
        ("id", c_uint8 * TEAM_ID_BYTES),
        ("addresses", c_void_p),
        ("compress", c_char_p),
    ]


class Block(ctypes.Structure):
    _fields_ = [
        ("peer", c_uint32),
        ("tag", c_uint32),
        ("address", c_void_p),
        ("bytes", c_uint64),
        ("layout", c_uint32),
    ]


class Collective(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("kind", c_int),
        ("algorithm", c_int),
        ("root", c_uint32),
        ("op", c_int),
        ("element", c_int),
        ("send", c_void_p),
        ("recv", c_void_p),
        ("send_count", c_uint32),
        ("recv_count", c_uint32),
        ("counts_bytes", c_void_p),
        ("layouts", c_void_p),
        ("layouts_count", c_uint32),
        ("ends", c_int),
    ]


class WindowParams(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("flags", c_uint32),
        ("id", c_uint64),
        ("base", c_void_p),
        ("bytes", c_uint64),
    ]


class RemoteParams(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("kind", c_int),
        ("target", c_uint32),
        ("op", c_int),
        ("element", c_int),
        ("target_layout", c_uint32),
        ("target_offset", c_uint64),
        ("target_bytes", c_uint64),
        ("send", Block),
        ("result", Block),
        ("layouts", c_void_p),
        ("layouts_count", c_uint32),
        ("flags", c_uint32),
        ("signal", c_void_p),
    ]


class OpTimes(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("last_peer", c_uint32),
        ("posted_ns", c_uint64),
        ("started_ns", c_uint64),
        ("first_byte_ns", c_uint64),
        ("done_ns", c_uint64),
    ]


class FunctionParams(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("flags", c_uint32),
        ("library", c_char_p),
        ("symbol", c_char_p),
        ("signature", c_char_p),
    ]


class TaskRange(ctypes.Structure):
    _fields_ = [("address", c_void_p), ("bytes", c_uint64), ("access", c_uint32), ("version", c_uint32)]


class TaskParams(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("flags", c_uint32),
        ("function", c_void_p),
        ("argument", c_char_p),
        ("argument_bytes", c_uint64),
        ("ranges", c_void_p),
        ("after", c_void_p),
        ("ranges_count", c_uint32),
        ("after_count", c_uint32),
        ("priority", c_int32),
        ("reserved", c_uint32),
        ("limit_ns", c_uint64),
        ("cost_ns", c_uint64),
        ("deadline_ns", c_uint64),
    ]


class TaskResult(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("code", c_int32),
        ("signal", c_int32),
        ("executor", c_uint32),
        ("run_ns", c_uint64),
        ("text", c_char * 256),
    ]


class FileTransfer(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_uint32),
        ("flags", c_uint32),
        ("memory", Block),
        ("offset_bytes", c_uint64),
        ("skip_bytes", c_uint64),
        ("layouts", c_void_p),
        ("after", c_void_p),
        ("layouts_count", c_uint32),
        ("layout", c_uint32),
        ("after_count", c_uint32),
        ("reserved", c_uint32),
    ]


# Names in the header, for the test that compares sizes and offsets.
IN_THE_HEADER: dict[str, type[ctypes.Structure]] = {
    "offpath_error_t": Error,
    "offpath_attach_params_t": AttachParams,
    "offpath_session_counters_t": Counters,
    "offpath_team_params_t": TeamParams,
    "offpath_block_t": Block,
    "offpath_collective_t": Collective,
    "offpath_window_params_t": WindowParams,
    "offpath_remote_t": RemoteParams,
    "offpath_op_times_t": OpTimes,
    "offpath_function_params_t": FunctionParams,
    "offpath_task_range_t": TaskRange,
    "offpath_task_params_t": TaskParams,
    "offpath_task_result_t": TaskResult,
    "offpath_file_transfer_t": FileTransfer,
}
