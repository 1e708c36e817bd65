#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs cases of the OpenSHMEM tests: a program natively and under the preload, or under a fault.

Usage: driver.py --build DIR CASE...
Exit status: 0 right, 1 any wrong (the reason is printed), 77 all skipped.
"""

import argparse
import os
import random as numbers
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpose"))

from setting import SECONDS, Setting, Skipped, check, run_cases, same

# Open MPI 4.1.4 calls a memory hook that is gone: natively every program would crash in shmem_finalize.
CURES = ["--mca", "memory", "^patcher"]


class ShmemSetting(Setting):
    """OpenSHMEM programs, started by oshrun."""

    def __init__(self, build):
        super().__init__(argparse.Namespace(build=build, mpi="openmpi", kind="real"))
        self.library = os.path.join(build, "lib/liboffpath_shmem.so")

    def program(self, name):
        path = os.path.join(self.build, "tests/shmem", name)
        if not os.path.exists(path):
            raise Skipped(f"{path} was not built")
        return path

    def launch(self, command, ranks, changes, preload):
        base, changes = self.environment(changes)
        if preload:
            changes["LD_PRELOAD"] = preload
        arguments = ["oshrun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", *CURES,
                     "-np", str(ranks)]
        for name, value in changes.items():
            arguments += ["-x", f"{name}={value}"]
        with open(f"{self.folder}/out", "w") as out, open(f"{self.folder}/err", "w") as err:
            return subprocess.Popen([*arguments, *command], stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=base,
                                    start_new_session=True, cwd=self.folder)


def offloaded(s, name, *arguments, ranks=2, **changes):
    """Right results, and the service did it."""
    run = s.offloaded(name, *arguments, ranks=ranks, OFFPATH_STATS_FILE=s.stats, **changes)
    check(run.status == 0 and "WRONG" not in run.out and not run.warnings(), str(run))
    lines = s.statistics()
    check(len(lines) == ranks, f"{len(lines)} of {ranks} PEs reported")
    for line in lines:
        check(line["enabled"] and line["native_count"] == 0, f"not offloaded: {line}")
        check(line["failed_count"] == 0 and line["completed_count"] >= line["offloaded_count"], f"not done: {line}")
    check(sum(line["offloaded_count"] for line in lines) > 0, f"nothing was offloaded: {lines}")
    return run


def compare(s, name, *arguments, ranks=2, **changes):
    native = s.native(name, *arguments, ranks=ranks)
    check(native.status == 0, f"the native run failed: {native}")
    same(native, offloaded(s, name, *arguments, ranks=ranks, **changes))


def moves(s):
    compare(s, "moves")
    offloaded(s, "moves", ranks=3)


def atomics(s):
    """Not compared: natively shmem_int_atomic_compare_swap overruns its stack (Open MPI 4.1.4)."""
    offloaded(s, "atomics")
    offloaded(s, "atomics", ranks=4)


def order(s):
    compare(s, "order")
    # As between nodes: a PE's own library answers for its locks.
    offloaded(s, "order", "tests", UCX_TLS="tcp,self")
    offloaded(s, "order", ranks=3)


def computing(s):
    """Not compared: natively the others wait until the target calls OpenSHMEM."""
    offloaded(s, "computing")
    offloaded(s, "computing", ranks=3)


def random(s):
    seed = str(numbers.randrange(1 << 32))
    print(f"seed {seed}")
    compare(s, "random", seed)
    offloaded(s, "random", seed, "20", ranks=4)


def collectives(s):
    """Those that are waited for in the call, too, and sets that are not the whole job."""
    seed = str(numbers.randrange(1 << 32))
    print(f"seed {seed}")
    compare(s, "collectives", seed, OFFPATH_MPI_BLOCKING="all")
    run = offloaded(s, "collectives", seed, "30", ranks=5, OFFPATH_MPI_BLOCKING="all")
    same(s.native("collectives", seed, "30", ranks=5), run)


def collectives_by_policy(s):
    """Some of each kind are offloaded, the others native, alike at all PEs. Windows may be native altogether."""
    changes = {"OFFPATH_POLICY": "*:1K-inf:dpu,ibcast:host,window:host", "OFFPATH_MPI_BLOCKING": "allgatherv"}
    run = s.offloaded("collectives", "5", "40", ranks=4, OFFPATH_STATS_FILE=s.stats, **changes)
    same(s.native("collectives", "5", "40", ranks=4), run)
    lines = [line["collectives"] for line in s.statistics()]
    sums = {name: [sum(line.get(name, {}).get(f"{way}_count", 0) for line in lines) for way in ("offloaded", "native")]
            for name in ("put", "broadcast", "collect", "fcollect", "alltoall", "reduce")}
    check(sums["put"] == [0, 0] and sums["broadcast"][0] == 0 and sums["broadcast"][1] > 0, f"{sums}")
    check(all(min(sums[name]) > 0 for name in ("collect", "fcollect", "alltoall", "reduce")), f"{sums}")


def threads_wait_natively(s):
    """Where threads may be in collectives of one set at a time, the services could not tell them apart."""
    run = s.offloaded("ends", "many_threads", ranks=2, OFFPATH_MPI_BLOCKING="all", OFFPATH_STATS_FILE=s.stats)
    check(run.status == 0 and "reduce: ok" in run.out, str(run))
    check(all("reduce" not in line["collectives"] for line in s.statistics()), str(run))


def hybrid(s):
    compare(s, "hybrid")


def profiled(s):
    run = offloaded(s, "profiled")
    check(run.out.count("counted") == 2, str(run))


def ends_well(s, way):
    native = s.native("ends", way, ranks=2)
    check(native.status == 0, str(native))
    same(native, offloaded(s, "ends", way))


def ends_badly(s, way, *words, ranks=2):
    """The job ends, as it does natively, and nobody hangs."""
    run = s.offloaded("ends", way, ranks=ranks)
    check(run.status != 0, str(run))
    check("put: ok" in run.out, str(run))
    for word in words:
        check(word in run.err, f"'{word}' is missing: {run}")
    return run


def global_exit(s):
    check(ends_badly(s, "global_exit").status == 5, "the exit status is not the program's")


def wrong_call(s, way):
    """A wrong call gets the native library's own answer."""
    native = s.native("ends", way, ranks=2)
    run = s.offloaded("ends", way, ranks=2)
    check(run.status == native.status and run.status != 0, f"=== native: {native}\n=== preloaded: {run}")
    check(not run.warnings(), str(run))


def killed(s):
    ends_badly(s, "killed", ranks=3)


def service_killed(s, way="service_killed"):
    ready = f"{s.folder}/ready"
    changes = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_SERVICE_SHARE": "1", "ENDS_READY": ready}
    with s.running([s.program("ends"), way], 2, changes, s.library) as process:
        limit = time.monotonic() + SECONDS  # for a hang, never reached otherwise
        while not os.path.exists(ready):
            check(process.poll() is None and time.monotonic() < limit, f"it did not start: {s.texts(-1)}")
            time.sleep(0.01)
        for pid in s.service_pids():
            os.kill(pid, signal.SIGKILL)
        run = s.collect(process)
    check(run.status != 0 and "offpath error:" in run.err and "failed" in run.err, str(run))
    return run


def collective_killed(s):
    """Who waits for a collective when the service is killed hears of it; the job ends."""
    check("with other PEs failed" in service_killed(s, "collective_killed").err, "something else failed")


def waiting_killed(s):
    """So does who has posted a put, and then waits for what others do when it has arrived."""
    service_killed(s, "waiting_killed")


def stays_native(s, ranks=2, word=None, **changes):
    native = s.native("order", ranks=ranks)
    run = s.offloaded("order", ranks=ranks, OFFPATH_STATS_FILE=s.stats, **changes)
    same(native, run)
    check(len(run.warnings()) == (0 if word is None else 1), str(run))
    check(word is None or word in run.err, str(run))
    check(all(not line["enabled"] and line["reason"] for line in s.statistics()), "it was enabled")


def stats_file(s):
    run = s.offloaded("random", "1", "30", ranks=2, OFFPATH_STATS_FILE=s.stats)
    check(run.status == 0, str(run))
    lines = sorted(s.statistics(), key=lambda line: line["rank"])
    check([line["rank"] for line in lines] == [0, 1], f"{lines}")
    for line in lines:
        check(line["size"] == 2 and line["mpi"] == "openshmem" and line["reason"] == "", f"{line}")
        counts = {name: counts["offloaded_count"] for name, counts in line["collectives"].items()}
        check(set(counts) == {"put", "get", "atomic"} and sum(counts.values()) == line["offloaded_count"], f"{line}")


def symbols(s):
    """Exported is what OpenSHMEM has and nothing else, and no put, get, atomic or wait is forgotten."""
    def names(library):
        listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
        return set(re.findall(r" [A-Z] (\w+)", listing.stdout))

    linked = subprocess.run(["ldd", s.program("moves")], capture_output=True, text=True, check=True).stdout
    native = names(re.search(r"liboshmem\S* => (\S+)", linked)[1])
    # frontends/idle; offpath/shmem.h
    ours = names(s.library) - {"sched_yield", "ucp_worker_progress", "shmemx_offpath_calls"}
    check(not ours - native, f"exports too much: {sorted(ours - native)}")
    typed = re.compile(r"shmemx?_(ctx_)?(\w+_)?(p|g|i?put\w*|i?get\w*|add|fadd|f?inc|cswap|swap|set|fetch|wait|"
                       r"wait_until|atomic_\w+|\w+_to_all)$|shmem_(broadcast|f?collect|alltoalls?)\d+$")
    forgotten = {name for name in native if typed.match(name) and "get_name" not in name and "version" not in name}
    check(not forgotten - ours, f"forgotten: {sorted(forgotten - ours)}")
    profiled = {f"p{name}" for name in ours} & native
    check(not profiled - ours, f"a tool's calls pass by: {sorted(profiled - ours)}")
    needed = subprocess.run(["readelf", "-d", s.library], capture_output=True, text=True, check=True).stdout
    check("shmem.so.4" not in needed and "libmpi" not in needed and "stdc++" not in needed, needed)


CASES = {
    "start_pes": lambda s: ends_well(s, "start_pes"),
    "init_thread": lambda s: ends_well(s, "threads"),
    "no_finalize": lambda s: ends_well(s, "no_finalize"),
    "bad_pe": lambda s: wrong_call(s, "bad_pe"),
    "bad_address": lambda s: wrong_call(s, "bad_address"),
    "one_process": lambda s: stays_native(s, ranks=1),
    "policy_host": lambda s: stays_native(s, OFFPATH_POLICY="window:host"),
    "switched_off": lambda s: stays_native(s, OFFPATH_ENABLE="0"),
    "bad_blocking": lambda s: stays_native(s, word="bcst", OFFPATH_MPI_BLOCKING="bcst"),
    "bad_policy": lambda s: stays_native(s, word="windw", OFFPATH_POLICY="windw:dpu"),
    "no_service": lambda s: stays_native(s, word="could not attach", OFFPATH_SERVICE_PATH="/nonexistent/offpathd"),
    "statistics": stats_file,
    **{f.__name__: f for f in (moves, atomics, order, computing, random, collectives, collectives_by_policy,
                               threads_wait_natively, hybrid, profiled, global_exit, killed, service_killed,
                               collective_killed, waiting_killed, symbols)},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("cases", nargs="+", choices=sorted(CASES), metavar="CASE")
    options = parser.parse_args()
    return run_cases(options.cases, CASES, lambda: ShmemSetting(options.build))


if __name__ == "__main__":
    sys.exit(main())
