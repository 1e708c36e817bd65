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


CASES = [many_names]
