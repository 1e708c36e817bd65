# SPDX-License-Identifier: BSD-3-Clause
"""Cases of files: the service writes and reads them where a row says so."""

import contextlib
import os
import signal
import subprocess

from setting import Skipped, check, same, wait_for, wait_until

POLICY = "*:host,write:8K-inf:dpu,read:8K-inf:dpu"
WAYS = ("write", "read")


def run(s, *arguments, ranks=2, policy=POLICY, program="files", status=0, **changes):
    """Under the preload; with what each rank says of files."""
    other = s.offloaded(program, *arguments, ranks=ranks, OFFPATH_POLICY=policy, OFFPATH_STATS_FILE=s.stats, **changes)
    check(other.status == status and "WRONG" not in other.out and not other.warnings(), str(other))
    found = [line["files"] for line in s.statistics()]
    return other, found


def total(found, way, key):
    return sum(one.get(way, {}).get(key, 0) for one in found)


def files(s):
    """As natively; with the stand-in every transfer is done again by its process."""
    for ranks in (2, 3):
        other, found = run(s, ranks=ranks)
        same(s.native("files", ranks=ranks), other)
        for way in WAYS:
            check(total(found, way, "offloaded_count") > 0 and total(found, way, "native_count") > 0, f"{way}: {found}")
        lost = sum(one.get("again_count", 0) for one in found)
        began = sum(total(found, way, "offloaded_count") for way in WAYS)
        check(lost == (began if s.kind == "fake" else 0), f"{lost} of {began} were done again: {found}")
        check(all("failed_count" not in one for one in found), f"some failed: {found}")


def files_end(s):
    """Reads at and behind the end of a file, which Open MPI 4 never ends natively."""
    other, _ = run(s, "ends", program="files")
    if s.mpi == "mpich":
        same(s.native("files", "ends", ranks=2), other)
    for rank in range(2):
        check(f"end: rank {rank}: 30000 " in other.out and f"behind: rank {rank}: 0 0" in other.out, str(other))
    other, _ = run(s, "within", program="files")
    check(other.out == "within: rank 0: 30010 1\nwithin: rank 1: 30010 1\n", str(other))


def files_policy(s):
    """Sizes decide; what forces collectives forces no files, and without a row nothing is touched."""
    other, found = run(s, policy="*:dpu")
    same(s.native("files", ranks=2), other)
    check(all(one == {} for one in found), f"files were touched: {found}")
    other, found = run(s, policy="*:host,write:150K-inf:dpu")
    same(s.native("files", ranks=2), other)
    check(total(found, "write", "offloaded_count") > 0 and total(found, "read", "offloaded_count") == 0, str(found))


def files_fortran(s):
    for layer in ("mpifh", "use_mpi", "f08"):
        other, found = run(s, program=f"files_fortran_{layer}", ranks=3)
        same(s.native(f"files_fortran_{layer}", ranks=3), other)
        for way in WAYS:
            check(all(one[way]["offloaded_count"] == 2 for one in found), f"{layer}: {found}")


# Open MPI has communicators enough, and crashes natively where a process may not write; MPICH cannot spawn under this
# launcher.
ODD = {"openmpi": ("prefixed", "threads", "sought", "removed", "sparse", "synced", "run", "spawned"),
       "mpich": ("prefixed", "many", "threads", "sought", "removed", "sparse", "synced", "run", "limited")}


def files_odd(s):
    for how in ODD[s.mpi]:
        other, _ = run(s, how, program="files_odd")
        same(s.native("files_odd", how, ranks=2), other)


def files_large(s):
    """With large counts, which a program finds at run time with any library."""
    other, found = run(s, program="files_large", ranks=3)
    check("split ordered: ok" in other.out, str(other))
    check(all(total(found, way, "offloaded_count") == 3 * 6 for way in WAYS), str(found))
    for changes in ({"OFFPATH_ENABLE": "0"}, {"OFFPATH_PROFILE": f"{s.folder}/profile"}):
        other = s.run([s.program("files_large")], 3, s.library, **changes)
        check(other.status == 0 and "WRONG" not in other.out, f"{changes}: {other}")


def files_beyond(s):
    """More elements in one call than an int counts."""
    _, found = run(s, "beyond", program="files_large")
    check(all(total(found, way, "offloaded_bytes") > 1 << 31 for way in WAYS), str(found))


def files_full(s):
    """The error that MPI defines, at the write that had no room."""
    folder = f"{s.folder}/full"
    os.mkdir(folder)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "full", folder], capture_output=True)
    if mounted.returncode != 0:
        raise Skipped("needs root, to mount a small file system")
    try:
        other, found = run(s, f"{folder}/file", "full", program="files_lost")
        check("full: ok" in other.out and sum(one.get("failed_count", 0) for one in found) > 0, f"{other} {found}")
    finally:
        subprocess.run(["umount", folder], check=True)


def files_lost(s):
    """A service that is killed while it writes: the processes do it again, and nothing is lost."""
    command = [s.program("files_lost"), f"{s.folder}/file"]
    changes = {"OFFPATH_POLICY": POLICY, "OFFPATH_SERVICE_SHARE": "1", "OFFPATH_STATS_FILE": s.stats}
    with s.running(command, 2, changes, s.library) as process:
        wait_for(f"{s.folder}/ready")
        killed = set(s.service_pids())
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not killed & set(s.service_pids()), "the service is gone")
        with open(f"{s.folder}/killed", "w"):
            pass
        other = s.collect(process)
    check(other.status == 0 and "lost: ok" in other.out, str(other))
    check(len([line for line in other.warnings() if "lost" in line]) <= 1, str(other))
    found = [line["files"] for line in s.statistics()]
    check(total(found, "write", "offloaded_count") > 0, str(found))


CASES = (files, files_end, files_policy, files_fortran, files_large, files_beyond, files_odd, files_full, files_lost)
