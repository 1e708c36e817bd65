# SPDX-License-Identifier: BSD-3-Clause
"""Whether a file fits into memory, said before it is read."""

from __future__ import annotations

import contextlib
import math
import resource
from collections.abc import Iterable
from pathlib import Path

from offpath.base.errors import UserError
from offpath.base.sizes import rough_size_text

OF_JSON = 10  # bytes in memory for a byte of a trace or a profile; measured: 6, of an archive 8
OF_PARTS = 60  # the same of what ranks write, 80 bytes an operation
_CGROUP = Path("/sys/fs/cgroup")


def check(files: Iterable[Path], times: int, what: str, instead: str) -> None:
    """Raises UserError where the files take more memory than there is. instead: what to do then."""
    size = 0
    for file in files:
        with contextlib.suppress(OSError):  # who reads it says why it cannot
            size += file.stat().st_size
    free = available()
    if size * times > free:
        raise UserError(
            f"{what} has {rough_size_text(size)} (in memory some {rough_size_text(size * times)}, and "
            f"{rough_size_text(free)} are free here). {instead}."
        )


def available() -> float:
    """Bytes that this process may still take: of the machine, of its control group, of its own limit."""
    return min(_of_machine(), _of_control_group(), _of_process())


def _of_machine() -> float:
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/meminfo") as file:
        return 1024 * int(next(line for line in file if line.startswith("MemAvailable:")).split()[1])
    return math.inf


def _of_control_group() -> float:
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/self/cgroup") as file:
        group = _CGROUP / next(line for line in file if line.startswith("0::"))[3:].strip().lstrip("/")
        return int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
    return math.inf


def _of_process() -> float:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    with open("/proc/self/statm") as file:
        return limit - resource.getpagesize() * int(file.read().split()[0])
