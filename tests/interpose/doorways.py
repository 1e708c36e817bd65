# SPDX-License-Identifier: BSD-3-Clause
"""Cases about the doorway: how it finds the MPI, and what a program finds there."""

import os
import re
import shutil
import subprocess
import sys

from setting import FORCED, check, same

LIBRARIES = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}
DLOPEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/dlopen_mpi.py")


def many_names(s):
    """More than 64 KiB of names of loaded libraries, before the MPI's."""
    folder = os.path.join(s.folder, *["d" * 240] * 14)
    os.makedirs(folder)
    for i in range(20):
        shutil.copy(f"{s.build}/lib/liboffpath.so", f"{folder}/lib{i}.so")
    command = [sys.executable, DLOPEN, LIBRARIES[s.mpi], "global", folder]
    native = s.run(command, 2)
    check(native.status == 0 and "ranks: 2" in native.out, str(native))
    same(native, s.run(command, 2, s.library, **FORCED, OFFPATH_STATS_FILE=s.stats))
    check(all(line["enabled"] for line in s.statistics()), "not attached")


LARGE = {"ialltoall", "ialltoallv", "ialltoallw", "ibcast", "iallgatherv", "igatherv", "iscatterv", "iallreduce",
         "ireduce_scatter", "ineighbor_alltoallw"}


def large(s):
    """A program finds large-count functions at run time, and they work with every library and without Offpath."""
    for changes in (FORCED, {"OFFPATH_ENABLE": "0"}, {"OFFPATH_PROFILE": f"{s.folder}/profile"}):
        other = s.run([s.program("large"), "all"], 3, s.library, **changes, OFFPATH_STATS_FILE=s.stats)
        check(other.status == 0 and "request: ok" in other.out and not other.warnings(), f"{changes}: {other}")
    for line in s.statistics():
        offloaded = {name for name, counts in line["collectives"].items() if counts["offloaded_count"] > 0}
        check(offloaded == LARGE and line["windows"]["offloaded_count"] == 2, str(line))


PERSISTENT = re.compile(rb"M(PIX?_(?:Barrier|Bcast|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Reduce|Allreduce|"
                        rb"Scan|Exscan|Reduce_scatter(?:_block)?|Neighbor_all(?:gatherv?|toall[vw]?))_init(?:_c)?\0)")


def library_without_persistent(s):
    """The loaded MPI, whose persistent collectives have other names."""
    name = LIBRARIES[s.mpi]
    libraries = subprocess.run(["ldd", s.program("persistent")], capture_output=True, text=True, check=True).stdout
    (path,) = re.findall(rf"{re.escape(name)} => (\S+)", libraries)
    with open(path, "rb") as whole, open(f"{s.folder}/{name}", "wb") as lacking:
        lacking.write(PERSISTENT.sub(rb"x\1", whole.read()))
    return {"LD_LIBRARY_PATH": s.folder}


def persistent_missing(s):
    """A library without persistent collectives: they work for who finds them, with and without Offpath."""
    lacking = library_without_persistent(s)
    native = s.run([s.program("persistent")], 2, **lacking)
    check("undefined symbol" in native.err, f"it has them: {native}")
    off, profile = {"OFFPATH_ENABLE": "0"}, {"OFFPATH_PROFILE": f"{s.folder}/profile"}
    for changes in (FORCED, {"OFFPATH_POLICY": "*:host"}, off, profile):
        arguments = [] if changes is FORCED else ["any status"]
        command = [s.program("persistent"), *arguments]
        other = s.run(command, 3, s.library, **lacking, **changes, OFFPATH_STATS_FILE=s.stats)
        check(other.status == 0 and "freed: ok" in other.out and "WRONG" not in other.out, f"{changes}: {other}")
        if changes is FORCED:
            lines = s.statistics()
            check(all(line["offloaded_count"] == 74 for line in lines), str(lines))
    nonblocking = s.native("forms", "nonblocking")
    for changes in (FORCED, off):
        same(nonblocking, s.run([s.program("forms"), "persistent"], 4, s.library, **lacking, **changes))


def standard_abi(s):
    """A library with the standard's ABI that lacks nearly all of it: the program runs natively, and is told so."""
    program = os.path.join(s.build, "tests/interpose/abi/program")
    other = s.run([program], 1, s.library, **FORCED)
    check(other.status == 0 and "initialized: 1" in other.out, str(other))
    check(len(other.warnings()) == 1 and "does not fit this MPI" in other.err, str(other))


def tool_that_bypasses(s):
    """A tool that takes the next MPI_Wait: in front it is one of ours, behind us the library's, which would complete
    receives of ours with what stands for a long message in the program's memory."""
    tool = os.path.join(s.build, "tests/interpose", s.mpi, "libbypassing_tool.so")
    native = s.native("messages", ranks=2)
    changes = {**FORCED, "OFFPATH_POLICY": "*:dpu,send:4K-inf:dpu", "OFFPATH_STATS_FILE": s.stats}
    same(native, s.run([s.program("messages")], 2, f"{tool}:{s.library}", **changes))
    check(all(line["messages"]["offloaded_count"] > 0 for line in s.statistics()), "no message was offloaded")
    other = s.run([s.program("messages")], 2, f"{s.library}:{tool}", **changes)
    same(native, other)
    check(len(other.warnings()) == 1 and "libbypassing_tool.so' stands behind Offpath" in other.err, str(other))


def initialized_past_us(s):
    """By the library's own handle; later calls by the names that the program has."""
    other = s.run([sys.executable, DLOPEN, LIBRARIES[s.mpi], "late"], 2, s.library, **FORCED)
    check(other.status == 0 and "ranks: 2" in other.out, str(other))
    check(len(other.warnings()) == 1 and "MPI_Init was called past Offpath" in other.err, str(other))


CASES = [tool_that_bypasses, initialized_past_us, many_names, large, persistent_missing, standard_abi]
