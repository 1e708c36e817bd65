# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command that may not touch other processes' memory, as in a container with a filter of system calls."""

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # EPERM
READV, WRITEV = {"x86_64": (310, 311), "aarch64": (270, 271)}[os.uname().machine]

lines = [(LOAD, 0, 0, 0), (JUMP_EQUAL, 1, 0, READV), (JUMP_EQUAL, 0, 1, WRITEV), (RETURN, 0, 0, REFUSE),
         (RETURN, 0, 0, ALLOW)]  # fmt: skip
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
    sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
