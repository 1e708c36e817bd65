# SPDX-License-Identifier: BSD-3-Clause
"""Cases about the doorway: how it finds the MPI, and what a program finds there."""

import os
import shutil
import sys

from setting import FORCED, check, same, statistics

LIBRARIES = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}
DLOPEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/dlopen_mpi.py")


def many_names(s):
    """More than 64 KiB of names of loaded libraries, before the MPI's."""
    folder = os.path.join(s.folder, *["d" * 240] * 14)
    os.makedirs(folder)
    for i in range(20):
        shutil.copy(f"{s.build}/lib/liboffpath.so", f"{folder}/lib{i}.so")
    command = [sys.executable, DLOPEN, LIBRARIES[s.mpi], "global", folder]
    stats = f"{s.folder}/stats.json"
    native = s.run(command, 2)
    check(native.status == 0 and "ranks: 2" in native.out, str(native))
    same(native, s.run(command, 2, s.library, **FORCED, OFFPATH_STATS_FILE=stats))
    check(all(line["enabled"] for line in statistics(stats)), "not attached")


LARGE = {"ialltoall", "ialltoallv", "ialltoallw", "ibcast", "iallgatherv", "igatherv", "iscatterv", "iallreduce",
         "ireduce_scatter", "ineighbor_alltoallw"}


def large(s):
    """A program finds large-count functions at run time, and they work with every library and without Offpath."""
    stats = f"{s.folder}/stats.json"
    for changes in (FORCED, {"OFFPATH_ENABLE": "0"}, {"OFFPATH_PROFILE": f"{s.folder}/profile"}):
        other = s.run([s.program("large"), "all"], 3, s.library, **changes, OFFPATH_STATS_FILE=stats)
        check(other.status == 0 and "request: ok" in other.out and not other.warnings(), f"{changes}: {other}")
    for line in statistics(stats):
        offloaded = {name for name, counts in line["collectives"].items() if counts["offloaded_count"] > 0}
        check(offloaded == LARGE and line["windows"]["offloaded_count"] == 2, str(line))


def standard_abi(s):
    """A library with the standard's ABI has handles of its own, whoever made it: no back end serves it."""
    program = os.path.join(s.build, "tests/interpose/abi/program")
    other = s.run([program], 1, s.library, **FORCED)
    check(other.status == 0 and "initialized: 1" in other.out, str(other))
    check(len(other.warnings()) == 1 and "libmpi_abi.so" in other.err, str(other))


CASES = [many_names, large, standard_abi]
