# SPDX-License-Identifier: BSD-3-Clause
"""Cases of one-sided communication."""

import os
import random
import re
import signal
import subprocess
import time

from losses import kill_service
from pointtopoint import APART
from setting import FORCED, Skipped, check, wait_for

# Debian's Open MPI: osc/rdma gives wrong values, and fails where memory is attached.
NATIVE = {"OMPI_MCA_osc": "sm,pt2pt"}
FLAVORS, EPOCHS = 3, 4


def windows(stats):
    """The windows' numbers by rank; all were offloaded."""
    every = [line["windows"] for line in stats]
    check(all(one["offloaded_count"] > 0 and one["native_count"] == 0 for one in every), f"not offloaded: {every}")
    check(all(one["operations_count"] > 0 and one["operations_bytes"] > 0 for one in every), f"nothing done: {every}")
    return every


def run(s, name, *arguments, ranks=4, **changes):
    other = s.offloaded(name, *arguments, ranks=ranks, OFFPATH_STATS_FILE=s.stats, **NATIVE, **changes)
    check(other.status == 0 and "WRONG" not in other.out and not other.warnings(), str(other))
    other.stats = s.statistics()
    return other, windows(other.stats)


def rma(s):
    for ranks in (2, 4):
        other, found = run(s, "rma", ranks=ranks)
        check("several windows: ok" in other.out, str(other))
        check(all(one["offloaded_count"] == FLAVORS + 2 for one in found), str(found))


# Whether any puts and gets go natively then; what is measured depends on the machine.
WAYS = {"dpu": False, "host": True, "alternate": True, "auto": None}


def rma_ways(s):
    """Random operations against a model, whichever way they go. Alike: how many there were, and how much data."""
    sums = set()
    for ways in WAYS:
        # MPICH itself cannot end with a window that was not freed.
        kept = ["kept"] if ways == "host" and s.mpi == "openmpi" else []
        other, found = run(s, "rma_ways", *kept, ranks=3, OFFPATH_MPI_WINDOWS=ways)
        check(other.out.count(": ok") == 12, str(other))
        wrong = [one for one in found if WAYS[ways] not in (None, one["natively_count"] > 0)]
        check(not wrong, f"{ways}: {wrong}")
        sums.add(tuple(one["operations_count"] + one["natively_count"] for one in found))
        sums.add(tuple(one["operations_bytes"] + one["natively_bytes"] for one in found))
    check(len(sums) == 2, f"operations were lost, or counted twice: {sums}")
    # The user's row means the service for everything; what tests force by it, too.
    _, found = run(s, "rma_ways", ranks=3)
    check(all(one["natively_count"] == 0 for one in found), str(found))


def rma_atomics(s):
    """What is atomic stays so whichever way it goes, and when it changes that."""
    for ways, goes in WAYS.items():
        other, found = run(s, "rma_atomics", ranks=3, OFFPATH_MPI_WINDOWS=ways)
        check(other.out.count(": ok") == 8, f"{ways}: {other}")
        if goes is not None:
            check(all((one["natively_count"] > 0) == goes for one in found), f"{ways}: {found}")
        served = [one["operations_count"] for one in found]
        # With host only puts with a request are left to the service.
        check(max(served) < 100 if ways == "host" else goes is None or min(served) > 200, f"{ways}: {found}")
    # Those that were told different ways leave what is atomic to the service.
    other, found = run(s, "rma_atomics", "unlike", ranks=3, OFFPATH_MPI_WINDOWS="alternate")
    check(other.out.count(": ok") == 8 and all(one["operations_count"] > 700 for one in found), f"{other} {found}")
    check([one["natively_count"] > 0 for one in found] == [True, True, False], str(found))


def rma_types(s):
    run(s, "rma_types", ranks=2)
    run(s, "rma_types", ranks=3)


def accepted(s):
    """Operators on types that the standard does not name, but the library does: served, with the same results."""
    native = s.native("accepted", ranks=2, **NATIVE)
    other, _ = run(s, "accepted", ranks=2)
    check(native.status == 0 and native.out, str(native))
    wrong = set(native.out.splitlines()) ^ set(other.out.splitlines())
    check(not wrong, "native and offloaded differ:\n" + "\n".join(sorted(wrong)))
    for line in other.stats:
        # All but the one with an operator of the program.
        check(line["native_count"] == 1 and line["why"]["form_count"] == 1, f"not all were offloaded: {line}")
        check(line["failed_count"] == 0 and line["completed_count"] == line["offloaded_count"] > 0, str(line))


def rma_threads(s):
    run(s, "rma_threads", ranks=2)


def rma_fortran(s):
    counts = []
    for layer in ("mpifh", "use_mpi", "f08"):
        other, found = run(s, f"rma_fortran_{layer}")
        check("one-sided fortran: T" in other.out, str(other))
        counts.append([(one["offloaded_count"], one["operations_count"]) for one in found])
    check(counts == [[(2, 7)] * 4] * 3, f"not every call was offloaded: {counts}")


# What the libraries refuse although it is harmless, or with a class that depends on the call before.
LENIENT = ("MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL", "MPI_Win_unlock(MPI_PROC_NULL", "MPI_Win_sync",
           "MPI_Win_flush(2")


def rma_errors(s):
    """Whatever the native library refuses is refused with the same class; it lets some things pass that we refuse."""
    native = s.native("rma_errors", ranks=2, **NATIVE)
    own = s.offloaded("rma_errors", ranks=2, **NATIVE)
    check(native.status == 0 and own.status == 0, f"{native}\n{own}")
    pattern = re.compile(r"(.*): (.+), handler calls (\d)")
    wrong = []
    for line, other in zip(native.out.splitlines(), own.out.splitlines(), strict=True):
        case = pattern.fullmatch(line)
        if line != other and case[2] != "MPI_SUCCESS" and not case[1].startswith(LENIENT):
            wrong.append(f"native {line} / offloaded {other}")
    check(not wrong, "\n".join(wrong))
    run(s, "rma_errors", "ranges", ranks=2)
    for call in ("MPI_Put", "MPI_Win_unlock"):
        fatal = s.offloaded("rma_errors", call, ranks=2, **NATIVE)
        # Open MPI 4 itself loses some of its last words on their way to mpirun.
        named = f"{call} failed: " in fatal.err or (s.mpi == "openmpi" and "show_help.c" in fatal.err)
        check(fatal.status != 0 and named, f"does not name the call: {fatal}")


def rma_info(s):
    """The info key of rank 0 counts more than the policy; what is no word of it counts nothing."""
    for word, policy, offloaded, mixed in (("dpu", "window:host", True, 0), ("host", "window:dpu", False, 0),
                                           ("auto", "window:host", True, 1), ("perhaps", "window:dpu", True, 0),
                                           ("", "window:host", False, 0)):
        other = s.offloaded("rma_info", word, OFFPATH_POLICY=f"*:dpu,{policy}", OFFPATH_STATS_FILE=s.stats, **NATIVE)
        check(other.status == 0 and "info: ok" in other.out, str(other))
        for line in s.statistics():
            found = line["windows"]
            check(found["offloaded_count"] == (1 if offloaded else 0), f"{word}, {policy}: {found}")
            check(found["native_count"] == (0 if offloaded else 1), f"{word}, {policy}: {found}")
            check(found["mixed_count"] == mixed, f"{word}, {policy}: {found}")


def rma_lost(s):
    """Services that are killed are no errors; where operations are not kept, that is all they are."""
    if s.kind == "real":
        for way in ("fence", "lock", "request"):
            check("errors: none" in kill_service(s, way, program="rma_lost").out, f"errors with {way}")
        for ways in ("host", "alternate"):
            other = kill_service(s, "both", program="rma_lost", OFFPATH_MPI_WINDOWS=ways, **NATIVE)
            check("errors: none" in other.out, str(other))
        return
    for way in ("fence", "lock", "request"):
        for lose in ("0:1", "1:7", "2:30", "3:39"):
            other = s.offloaded("rma_lost", way, OFFPATH_FAKE_LOSE_REMOTE=lose, **NATIVE)
            check(other.status == 0 and "after the loss: ok" in other.out and "errors: some" in other.out, str(other))
    for ways in ("host", "alternate"):
        other = s.offloaded("rma_lost", "both", OFFPATH_FAKE_LOSE_REMOTE="1:30", OFFPATH_MPI_WINDOWS=ways, **NATIVE)
        check(other.status == 0 and "after the loss: ok" in other.out and "errors: some" in other.out, str(other))


def killed_under_windows(s, seeds, apart, **changes):
    """Random one-sided programs whose service is killed at a random moment; `apart`: of one rank, as each is on a node
    of its own. Every second service is stopped first, so that operations are under way."""
    if apart and subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode != 0:
        raise Skipped("no nodes of their own for ranks here")
    longest = 0.0
    for seed in seeds:
        dice = random.Random(seed)
        ready, go = f"{s.folder}/ready-{seed}", f"{s.folder}/go-{seed}"
        ranks = 2 + seed % 3
        folders = [f"{s.folder}/{rank}" for rank in range(ranks)] if apart else [s.folder]
        command = [s.program("lost_windows"), str(seed)]
        if apart:
            command = ["unshare", "--uts", "sh", "-c", APART, s.folder, *command]
        marks = {"LOST_READY": ready, "LOST_GO": go}
        with s.running(command, ranks, {**FORCED, **NATIVE, **marks, **changes}, s.library) as process:
            wait_for(ready)
            services = [pid for folder in folders for pid in s.service_pids(folder + "\0")]
            check(len(services) == len(folders), f"seed {seed}: services {services}")
            killed = dice.choice(services)
            time.sleep(dice.uniform(0, 0.1))
            if seed % 2:
                os.kill(killed, signal.SIGSTOP)
                time.sleep(0.05)
            os.kill(killed, signal.SIGKILL)
            open(go, "w").close()
            other = s.collect(process)
            for pid in [pid for folder in folders for pid in s.service_pids(folder + "\0")]:
                os.kill(pid, signal.SIGKILL)
        check(other.status == 0 and "after the loss: ok" in other.out, f"seed {seed}, {ranks} ranks: {other}")
        check(apart or len(other.warnings()) == 1, f"seed {seed}: not exactly one warning: {other}")
        longest = max(longest, float(re.search(r"longest round ([\d.]+)", other.out)[1]))
    print(f"killed {len(seeds)} services, longest round {longest:.3f} s")


def windows_lost(s):
    killed_under_windows(s, range(1, 7), False)
    if s.mpi == "openmpi":  # the other one calls in a thread, so it has no native way
        killed_under_windows(s, range(7, 10), False, OFFPATH_MPI_WINDOWS="alternate")


def windows_lost_apart(s):
    killed_under_windows(s, range(1, 7), True)


def windows_lost_long(s):
    killed_under_windows(s, range(10, 110), False)
    killed_under_windows(s, range(110, 210), True)


CASES = (windows_lost, windows_lost_apart, windows_lost_long,
         rma, rma_ways, rma_atomics, rma_types, accepted, rma_threads, rma_fortran, rma_errors, rma_info, rma_lost)
