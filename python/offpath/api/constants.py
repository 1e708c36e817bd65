# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of include/offpath/offpath.h, under their names there (tests/python/test_api_header.py compares them)."""

from __future__ import annotations

import enum

TOKEN_BYTES = 32
TEAM_ID_BYTES = 16
ADDRESS_MAX_BYTES = 1024
ATTACH_NODE_ONLY = 1
WINDOW_DYNAMIC = 1
REMOTE_RANGES_MAX = 128
REMOTE_INLINE_BYTES = 256
TASK_ARGUMENT_MAX_BYTES = 65536
TASK_RANGES_MAX = 1024
IN_PLACE = (1 << 64) - 1
FOREVER_NS = (1 << 64) - 1


class Status(enum.IntEnum):
    OK = 0
    IN_PROGRESS = 1
    ERR_ARGUMENT = -1
    ERR_STATE = -2
    ERR_NO_SERVICE = -3
    ERR_NO_MEMORY = -4
    ERR_PERMISSION = -5
    ERR_SERVICE_LOST = -6
    ERR_PEER_LOST = -7
    ERR_NOT_STARTED = -8
    ERR_TRUNCATED = -9
    ERR_MEMORY_FAULT = -10
    ERR_INTERNAL = -11
    ERR_RANGE = -12
    ERR_SHORT = -13
    ERR_DAMAGED = -14
    ERR_TASK = -15
    ERR_DEPENDENCE = -16
    ERR_CANCELLED = -17


class Loss(enum.IntEnum):
    NONE = 0
    SERVICE = 1
    SILENCE = 2
    PROCESS = 3


class Kind(enum.IntEnum):
    EXCHANGE = 1
    BARRIER = 2
    BCAST = 3
    ALLGATHER = 4
    REDUCE = 5
    ALLREDUCE = 6
    REDUCE_SCATTER = 7
    SCAN = 8
    EXSCAN = 9


class Algorithm(enum.IntEnum):
    DEFAULT = 0
    DIRECT = 1
    RING = 2
    CHAIN = 3
    BINOMIAL = 4
    SCATTER_ALLGATHER = 5
    DOUBLING = 6
    RABENSEIFNER = 7
    PAIRWISE = 8
    DISSEMINATION = 9
    MULTICAST = 10


class Operator(enum.IntEnum):
    NONE = 0
    SUM = 1
    PROD = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    LAND = 8
    LOR = 9
    LXOR = 10
    MINLOC = 11
    MAXLOC = 12
    REPLACE = 13
    NO_OP = 14


class Element(enum.IntEnum):
    NONE = 0
    I8 = 1
    I16 = 2
    I32 = 3
    I64 = 4
    U8 = 5
    U16 = 6
    U32 = 7
    U64 = 8
    F32 = 9
    F64 = 10
    FLONG = 11
    C32 = 12
    C64 = 13
    CLONG = 14
    F32_I32 = 15
    F64_I32 = 16
    I64_I32 = 17
    I32_I32 = 18
    I16_I32 = 19
    FLONG_I32 = 20
    F32_F32 = 21
    F64_F64 = 22


class Remote(enum.IntEnum):
    PUT = 1
    GET = 2
    ACCUMULATE = 3
    GET_ACCUMULATE = 4
    COMPARE_AND_SWAP = 5
    LOCK_SHARED = 6
    LOCK_EXCLUSIVE = 7
    UNLOCK = 8
    PUT_SIGNAL = 9


class Access(enum.IntEnum):
    IN = 1
    OUT = 2
    INOUT = 3
    REPORT = 6
