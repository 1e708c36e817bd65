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
_CGROUP, _GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_NAMES = {  # by controllers: of version 2, of version 1
    "": ("memory.max", "memory.current", ""),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
}


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
    """Of each group that this process is in, and of those around it."""
    rooms = [math.inf]
    with contextlib.suppress(OSError):
        for line in _GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            names = _NAMES.get("memory" if "memory" in controllers.split(",") else controllers)
            if names:
                home = _CGROUP / controllers
                own = home / path.lstrip("/")
                rooms += [_of_one(group, *names) for group in (own, *own.parents) if group.is_relative_to(home)]
    return min(rooms)


def _of_one(group: Path, most: str, used: str, cached: str) -> float:
    """What files have in the page cache counts as used, and goes when somebody needs the memory."""
    with contextlib.suppress(OSError, ValueError):
        limit, taken = (int((group / name).read_text()) for name in (most, used))
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        files = sum(int(stat.get(f"{cached}{kind}_file", 0)) for kind in ("active", "inactive"))
        return max(0, limit - max(0, taken - files))
    return math.inf


def _of_process() -> float:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    with open("/proc/self/statm") as file:
        return limit - resource.getpagesize() * int(file.read().split()[0])
