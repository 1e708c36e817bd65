# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is moved (OFFPATH_MAPPED): the same program natively and with its buffers moved after two uses."""

import ctypes.util
import os

from onesided import NATIVE
from setting import check, same, statistics


def moved(s, preloads):
    stats = f"{s.folder}/stats.json"
    library, s.library = s.library, ":".join(preloads)
    try:
        other = s.offloaded("mapped", ranks=3, OFFPATH_MAPPED="2", OFFPATH_STATS_FILE=stats, **NATIVE)
    finally:
        s.library = library
    same(s.native("mapped", ranks=3, **NATIVE), other)
    check(other.status == 0 and "WRONG" not in other.out and not other.warnings(), str(other))
    lines = statistics(stats)
    os.unlink(stats)
    return lines


def mapped(s):
    watch = os.path.join(s.build, "lib/liboffpath_watch.so")
    ways = [[watch, s.library]]
    jemalloc = ctypes.util.find_library("jemalloc")
    if jemalloc:
        ways += [[jemalloc, s.library, watch], [watch, s.library, jemalloc]]
    for preloads in ways:
        lines = moved(s, preloads)
        check(len(lines) == 3 and all(line["enabled"] and line["failed_count"] == 0 for line in lines), str(lines))
        check(all(line["moved_count"] > 10 and line["in_place_bytes"] > 0 for line in lines), f"not moved: {lines}")
    lines = moved(s, [s.library])
    check(all(line["moved_count"] == 0 for line in lines), f"moved with nobody watching: {lines}")


CASES = (mapped,)
