# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is moved (OFFPATH_MAPPED): the same program natively and with its buffers moved after two uses."""

import ctypes.util
import os
import subprocess
import sys

from onesided import NATIVE
from setting import FORCED, Skipped, check, same


def moved(s, preloads, program="mapped", *arguments, ranks=3):
    library, s.library = s.library, ":".join(preloads)
    try:
        other = s.offloaded(program, *arguments, ranks=ranks, OFFPATH_MAPPED="2", OFFPATH_STATS_FILE=s.stats, **NATIVE)
    finally:
        s.library = library
    same(s.native(program, *arguments, ranks=ranks, **NATIVE), other)
    check(other.status == 0 and "WRONG" not in other.out and not other.warnings(), str(other))
    return s.statistics()


def allocating(s):
    if not os.path.exists(s.program("allocating")):
        raise Skipped("the compiler has no OpenMP")
    watch = os.path.join(s.build, "lib/liboffpath_watch.so")
    lines = moved(s, [watch, s.library], "allocating", ranks=2)
    check(all(line["moved_count"] > 2 and line["failed_count"] == 0 for line in lines), f"not moved: {lines}")


def arrays(s):
    """Python's own, or that of the checkout, with NumPy."""
    folder = os.path.dirname(os.path.abspath(__file__))
    checkout = os.path.join(folder, "../../.venv/bin/python")
    pythons = [python for python in (sys.executable, checkout) if os.path.exists(python)
               and subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0]
    if not pythons:
        raise Skipped("Python has no NumPy")
    library = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[s.mpi]
    watch = os.path.join(s.build, "lib/liboffpath_watch.so")
    command = [pythons[0], os.path.join(folder, "programs/arrays.py"), library]
    preload = f"{watch}:{s.library}"
    other = s.run(command, 2, preload, **FORCED, OFFPATH_MAPPED="2", OFFPATH_STATS_FILE=s.stats)
    same(s.run(command, 2), other)
    check(other.status == 0 and "arrays: ok" in other.out and not other.warnings(), str(other))
    lines = s.statistics()
    check(all(line["moved_count"] > 2 and line["lent_count"] == 1 for line in lines), f"not moved: {lines}")


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
    # Origin and receive buffer, and what was a window's before.
    lines = moved(s, ways[0], "mapped", "window")
    check(all(line["moved_count"] == 3 and len(line["moved"]) == 3 for line in lines), f"not moved: {lines}")
    lines = moved(s, [s.library])
    check(all(line["moved_count"] == 0 for line in lines), f"moved with nobody watching: {lines}")


def lent(s):
    native = s.native("lent", ranks=3, **NATIVE)
    check(native.status == 0 and "WRONG" not in native.out, str(native))
    # value, arguments, whether memory comes from us, lines said
    for value, arguments, ours, said in ((None, ["after"], True, 0), ("off", [], False, 0), ("of", [], True, 1)):
        changes = {} if value is None else {"OFFPATH_MAPPED": value}
        other = s.offloaded("lent", *arguments, ranks=3, OFFPATH_STATS_FILE=s.stats, **NATIVE, **changes)
        same(native, other)
        check(len(other.warnings()) == said, str(other))
        check(all("OFFPATH_MAPPED='of' is not off, allocated, on" in line for line in other.warnings()), str(other))
        lines = s.statistics()
        check(len(lines) == 3 and all(line["enabled"] and line["failed_count"] == 0 for line in lines), str(lines))
        for line in lines:
            check((line["lent_count"] > 4096) == ours, f"{value}: {line}")
            check(not ours or line["in_place_bytes"] > 4 * line["copied_bytes"], f"copied: {line}")
    # Those of windows: the origin's, and that of each window where none of its operations is better off natively.
    for value, count in (("dpu", 5), ("auto", 1)):
        other = s.offloaded("lent", "windows", ranks=3, OFFPATH_MPI_WINDOWS=value, OFFPATH_STATS_FILE=s.stats, **NATIVE)
        same(s.native("lent", "windows", ranks=3, **NATIVE), other)
        lines = s.statistics()
        counts = {(line["lent_count"], line["windows"]["offloaded_count"]) for line in lines}
        check(counts == {(count, 4)}, str(lines))
    # No room, and one line that says so where it is asked for.
    other = s.offloaded("lent", ranks=3, OFFPATH_LOG="info", OFFPATH_SHARED_MEMORY_BYTES="1048576", **NATIVE)
    same(native, other)
    said = [line for line in other.warnings() if "OFFPATH_SHARED_MEMORY_BYTES" in line]
    check(len(said) == 3, str(other))  # one a rank


CASES = (mapped, lent, allocating, arrays)
