# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel says of a process, by its number (proc(5))."""

from __future__ import annotations


def stat(pid: int) -> list[str]:
    """The fields from the state on: [0]. Raises OSError where there is no such process."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def is_dead(pid: int) -> bool:
    """It runs nothing any more: only its parent has not collected it yet, or it ends, and has given its memory back.
    Raises OSError."""
    fields = stat(pid)
    return fields[0] in "ZX" or fields[20] == "0"


def parent(pid: int) -> int:
    """Raises OSError."""
    return int(stat(pid)[1])


def began(pid: int) -> str:
    """When, in the kernel's clock: with its number, which is used again, it names a process for good. Empty where there
    is none, or a dead one."""
    try:
        fields = stat(pid)
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
