#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs cases of the interposition tests: an MPI program natively and under the preload, or under a fault.

Usage: driver.py --build DIR --mpi openmpi|mpich|none --kind fake|real CASE...
Exit status: 0 right, 1 any wrong (the reason is printed), 77 all skipped.
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import time

import adapting
import agents
import doorways
import file_transfers
import local_facts
import losses
import mapped
import onesided
import pointtopoint
import restarts
import teams
import telemetry
import tracing
from setting import FORCED, SECONDS, Setting, check, compare, run_cases, same

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from offpath.base import words  # noqa: E402


def exchange(s):
    compare(s, "exchange")
    compare(s, "exchange", ranks=2)


def few_slots(s):
    compare(s, "exchange", OFFPATH_FAKE_DEPTH="1")
    compare(s, "completion", OFFPATH_FAKE_DEPTH="2")


def completion(s):
    compare(s, "completion", CHECK_ERRNO="1")
    compare(s, "completion", ranks=2)


def request_free(s):
    other = s.offloaded("completion", "free")
    check(other.status == 0 and "comm_free with freed requests: ok" in other.out, str(other))


def progress(s):
    compare(s, "progress", ranks=2)
    compare(s, "progress", ranks=3)


def threads(s):
    compare(s, "threads", ranks=2)


def arguments(s):
    native = s.native("arguments", ranks=2)
    same(native, s.offloaded("arguments", ranks=2))


def rests(s):
    """On a core that ranks share, with their service or not, who waits sleeps, in whatever it waits; also without the
    lab's library."""
    cores = [str(core) for core in sorted(os.sched_getaffinity(0))]
    s.polite = False
    for core, shared in ((cores[0], "1"), (cores[-1], "0")):
        changes = {**FORCED, "OFFPATH_SERVICE_CORES": core, "OFFPATH_SERVICE_SHARE": shared}
        run = s.run(["taskset", "-c", cores[0], s.program("rests")], 3, s.library, **changes)
        lines = run.out.splitlines()
        check(run.status == 0 and len(lines) == 8 and all(line.endswith(": slept") for line in lines), str(run))


def quiet_waits(s):
    """On request, where there is a core for each rank, too, with and without a service."""
    s.polite = False
    for changes in ({"OFFPATH_POLICY": "*:host"}, FORCED):
        run = s.run([s.program("rests")], 2, s.library, OFFPATH_QUIET_WAITS="1", **changes)
        lines = run.out.splitlines()
        check(run.status == 0 and len(lines) == 4 and all(line.endswith(": slept") for line in lines), str(run))


def thread_level(s):
    """As without us, although the library may have been asked for more."""
    for asked in ((), ("0",), ("1",), ("2",), ("3",)):
        same(s.native("thread_level", *asked, ranks=2), s.offloaded("thread_level", *asked, ranks=2))


def early(s):
    native = s.native("early", ranks=2)
    check("initialized early: 0, errno 5" in native.out, str(native))
    other = s.offloaded("early", ranks=2)
    same(native, other)


def at_exit(s):
    compare(s, "at_exit", ranks=2, MALLOC_PERTURB_="165")  # what was freed is not what it was


def calls(stats):
    """By collective how often it was offloaded, the same on all ranks, and not once native."""
    every = [{name: line["collectives"][name]["offloaded_count"] for name in line["collectives"]} for line in stats]
    check(all(one == every[0] for one in every), f"the ranks differ: {every}")
    check(all(line["native_count"] == 0 for line in stats), f"some calls stayed native: {stats[0]}")
    return every[0]


FORTRAN_CALLS = {"ialltoall": 2, **dict.fromkeys(["ibarrier", "ibcast", "iallgatherv", "ireduce", "iallreduce",
                                                  "ireduce_scatter_block", "iscan"], 1)}


def fortran(s, layer):
    found = calls(compare(s, f"fortran_{layer}").stats)
    check(found == FORTRAN_CALLS, f"{layer} was not offloaded once each: {found}")


COLLECTIVES = ["igather", "igatherv", "iscatter", "iscatterv", "iallgather", "iallgatherv", "ialltoall", "ialltoallv",
               "ialltoallw", "ibcast", "ireduce", "iallreduce", "ireduce_scatter", "ireduce_scatter_block", "iscan",
               "iexscan", *[f"ineighbor_{form}" for form in ("allgather", "allgatherv", "alltoall", "alltoallv",
                                                             "alltoallw")]]
TWICE = {"igather", "iscatter", "iallgather", "ialltoall", "ireduce", "iallreduce", "iscan"}  # also in place
BLOCKING = {"ibcast", "iallgather", "iallgatherv", "ialltoall", "ialltoallv", "iallreduce"}


def forms(s, form):
    """All forms do the same; natively MPICH's persistent ones do not."""
    native = s.native("forms", "nonblocking")
    same(native, s.offloaded("forms", form, OFFPATH_STATS_FILE=s.stats))
    expected = {name: 4 if name in TWICE else 2 for name in COLLECTIVES if form != "blocking" or name in BLOCKING}
    if form != "blocking":
        expected["ibarrier"] = 1
    lines = s.statistics()
    check(calls(lines) == expected, f"not offloaded as often as called: {lines[0]}")


def bad_blocking(s):
    other = s.offloaded("exchange", OFFPATH_MPI_BLOCKING="alltoall,barrier")
    check(other.status == 0 and len(other.warnings()) == 1 and "'barrier'" in other.err, str(other))


def neighbors(s):
    for ranks in (2, 3, 4):
        calls(compare(s, "neighbors", ranks=ranks).stats)


def pairs(s):
    # Not compared: Open MPI 4's own in-place Ialltoallv is wrong with several under way.
    for ranks, depth in ((2, "16"), (3, "16"), (4, "16"), (4, "2")):
        other = s.offloaded("pairs", "persistent", ranks=ranks, OFFPATH_FAKE_DEPTH=depth,
                            OFFPATH_POLICY="*:4K-inf:dpu", OFFPATH_STATS_FILE=s.stats)
        check(other.status == 0 and "persistent: ok" in other.out and not other.warnings(), str(other))
        lines = s.statistics()
        calls_of = [line["collectives"]["ialltoallv"] for line in lines]
        check(all(each["offloaded_count"] > 0 for each in calls_of), f"not offloaded: {calls_of}")
        check(ranks == 2 or any(each["native_count"] > 0 for each in calls_of), f"all had long blocks: {calls_of}")
        check(all(line["completed_count"] == line["offloaded_count"] for line in lines), f"not all completed: {lines}")
    # Which edge meets which, where all go natively.
    for ranks in (2, 4):
        compare(s, "neighbors", ranks=ranks, all_native=True, OFFPATH_POLICY="*:64-inf:dpu")


def types(s):
    calls(compare(s, "types", ranks=3).stats)


def persistent(s):
    for ranks in (2, 4):
        other = s.offloaded("persistent", ranks=ranks, OFFPATH_STATS_FILE=s.stats)
        check(other.status == 0, str(other))
        lines = s.statistics()
        check(calls(lines) == {"ialltoall": 37, "iallreduce": 37}, str(lines[0]))


def tool(s, order):
    library = os.path.join(s.build, "tests/interpose", s.mpi, "libtool.so")
    preload = ":".join([s.library, library] if order == "behind" else [library, s.library])
    both = s.run([s.program("exchange")], 4, preload, **FORCED, OFFPATH_STATS_FILE=s.stats)
    alone = s.run([s.program("exchange")], 4, library)
    check(both.status == 0 and both.out == alone.out, str(both))
    counted = [line for line in both.err.splitlines() if line.startswith("tool:")]
    expected = [line for line in alone.err.splitlines() if line.startswith("tool:")]
    check(counted and counted == expected, f"the tool saw other calls: {counted}, alone {expected}")
    check(all(line["offloaded_count"] > 0 for line in s.statistics()), "nothing was offloaded")


def dlopen(s, how):
    library = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}[s.mpi]
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/dlopen_mpi.py")
    command = [sys.executable, script, library, how]
    native = s.run(command, 2)
    check(native.status == 0 and "ranks: 2" in native.out, str(native))
    other = s.run(command, 2, s.library, **FORCED, OFFPATH_STATS_FILE=s.stats)
    same(native, other)
    if how == "global":
        lines = s.statistics()
        check(len(lines) == 2 and all(line["enabled"] for line in lines), "not attached")


def no_service(s):
    native = s.native("exchange")
    other = s.offloaded("exchange", OFFPATH_SERVICE_PATH="/nonexistent/offpathd")
    same(native, other)
    check(len(other.warnings()) == 1 and "offpath warn:" in other.err, f"not exactly one warning: {other}")
    quiet = s.offloaded("exchange", OFFPATH_SERVICE_PATH="/nonexistent/offpathd", OFFPATH_LOG="off")
    check(not quiet.warnings(), f"OFFPATH_LOG=off is not quiet: {quiet}")


def switched_off(s):
    native = s.native("exchange")
    other = s.offloaded("exchange", OFFPATH_ENABLE="0", OFFPATH_STATS_FILE=s.stats)
    same(native, other)
    check(not os.path.exists(s.stats) and not other.warnings(), f"not off: {other}")


def no_backend(s):
    alone = f"{s.folder}/liboffpath_mpi.so"
    shutil.copy(s.library, alone)
    native = s.native("exchange")
    other = s.run([s.program("exchange")], 4, alone, **FORCED)
    same(native, other)
    check(len(other.warnings()) == 1, f"not exactly one warning: {other}")


def one_process(s):
    native = s.native("exchange", ranks=1)
    same(native, s.offloaded("exchange", ranks=1))
    check(not s.service_pids() and not os.path.exists(f"{s.folder}/service.log"), "a service was started")


def no_spare_core(s):
    native = s.native("exchange")
    other = s.offloaded("exchange", OFFPATH_SERVICE_SHARE="0")
    same(native, other)
    if os.cpu_count() > 4:
        return
    check(len(other.warnings()) == 1 and "no spare core on host" in other.err, str(other))


def report_statistics(s):
    other = s.offloaded("exchange", OFFPATH_STATS_FILE=s.stats)
    lines = s.statistics()
    counted = {row["name"] for row in words.rows("counters") if row["line"] == "reported"}
    keys = counted | {"rank", "size", "node", "mpi", "enabled", "reason", "offloaded_count", "native_count",
                      "offloaded_bytes", "completed_count", "failed_count", "moved", "saved_ns", "starved_ns",
                      "cpu_ns", "wait_ns", "post_ns", "run_ns", "collectives", "windows", "why", "passed", "learned",
                      "messages", "files", "seen", "native_bytes_most"}
    check(other.status == 0 and len(lines) == 4 and {line["rank"] for line in lines} == {0, 1, 2, 3}, str(other))
    for line in lines:
        check(set(line) == keys, f"keys differ: {set(line) ^ keys}")
        check(line["mpi"] == s.mpi and line["size"] == 4 and line["local_bytes"] > 0 and line["service_pid"] > 0, line)
    limit = time.monotonic() + SECONDS  # for a service that stays, never reached otherwise
    while s.service_pids():
        check(time.monotonic() < limit, "the service outlived the job")
        time.sleep(0.01)


def policy_host(s):
    compare(s, "exchange", all_native=True, OFFPATH_POLICY="*:host")


def bad_policy(s):
    native = s.native("exchange")
    other = s.offloaded("exchange", OFFPATH_POLICY="ialltoall:dpux")
    same(native, other)
    check(len(other.warnings()) == 1 and "ialltoall:dpux" in other.err, str(other))


def waits(s):
    """Noted in the program's own session by the preloaded library, whether calls are offloaded or not."""
    for changes in (FORCED, {"OFFPATH_POLICY": "*:host", "OFFPATH_SERVICE_SHARE": "1"}):
        other = s.run([s.program("waits")], 2, s.library, **changes)
        check(other.status == 0 and "ok" in other.out and not other.err, str(other))


def waits_recorded(s):
    for variable in ("OFFPATH_TRACE", "OFFPATH_PROFILE"):
        changes = {variable: f"{s.folder}/recorded", "OFFPATH_SERVICE_SHARE": "1"}
        other = s.run([s.program("waits")], 2, s.library, **changes)
        check(other.status == 0 and "ok" in other.out and not other.err, f"{variable}: {other}")
        files = glob.glob(f"{s.folder}/recorded.*")
        check(files, f"{variable}: nothing was recorded")
        for file in files:
            os.unlink(file)


def refused_attach(s):
    native = s.native("exchange")
    other = s.offloaded("exchange", OFFPATH_FAKE_NO_ATTACH="2")
    same(native, other)
    check(len(other.warnings()) == 1 and "rank 2" in other.err, str(other))


def without_mpi(s):
    for command in (["ls", "/"], [sys.executable, "-c", "print(sum(range(10)))"], ["sh", "-c", "exit 7"]):
        native = s.run(command, 1)
        other = s.run(command, 1, s.library, LD_DEBUG="libs", LD_DEBUG_OUTPUT=f"{s.folder}/debug", **FORCED)
        same(native, other)
        check(not other.err, other.err)
    opened = "".join(open(path).read() for path in glob.glob(f"{s.folder}/debug*"))
    check("liboffpath_mpi.so" in opened, "the library was not preloaded")
    check("liboffpath_mpi_" not in opened and "libmpi" not in opened, "a back end or an MPI was loaded")


def symbols(s):
    """The doorway needs no MPI; the back ends call none by name (that would come back to the doorway)."""
    def read(tool, library):
        return subprocess.run([*tool, f"{s.build}/lib/{library}"], capture_output=True, text=True, check=True).stdout

    needed = read(["readelf", "-d"], "liboffpath_mpi.so")
    check("libmpi" not in needed and "stdc++" not in needed, needed)
    exported = re.findall(r" [A-Z] (\w+)", read(["nm", "-D", "--defined-only"], "liboffpath_mpi.so"))
    ours = r"P?MPIX?_|offpath_(frontend|region|serve|upcall)_|sched_yield$|ucp_worker_progress$"
    foreign = [name for name in exported if not re.match(ours, name)]
    check(not foreign and "PMPI_Wait" in exported, f"exports too much: {foreign}")
    for mpi in ("openmpi", "mpich"):
        table = read(["nm", "-D"], f"liboffpath_mpi_{mpi}.so")
        check(not re.search(r" U P?MPIX?_", table), f"{mpi}: calls MPI by name: {table}")


CASES = {
    "tool_behind": lambda s: tool(s, "behind"),
    "tool_in_front": lambda s: tool(s, "in front"),
    **{f"fortran_{layer}": lambda s, layer=layer: fortran(s, layer) for layer in ("mpifh", "use_mpi", "f08")},
    **{f"forms_{form}": lambda s, form=form: forms(s, form) for form in ("nonblocking", "persistent", "blocking")},
    "dlopen_handle": lambda s: dlopen(s, "handle"),
    "dlopen_global": lambda s: dlopen(s, "global"),
    "statistics": report_statistics,
    **tracing.CASES,
    **telemetry.CASES,
    **{f.__name__: f for f in (exchange, few_slots, completion, request_free, progress, threads, arguments,
                               thread_level, rests, quiet_waits, early, at_exit, neighbors, pairs, types, persistent,
                               no_service, switched_off, no_backend, one_process, no_spare_core, policy_host,
                               bad_policy, bad_blocking, refused_attach, symbols, without_mpi, waits, waits_recorded,
                               *adapting.CASES, *doorways.CASES, *local_facts.CASES, *teams.CASES,
                               *losses.CASES, *restarts.CASES, *onesided.CASES, *mapped.CASES, *pointtopoint.CASES,
                               *file_transfers.CASES, *agents.CASES)},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--mpi", required=True, choices=["openmpi", "mpich", "mpich_abi", "none"])
    parser.add_argument("--kind", required=True, choices=["fake", "real"])
    parser.add_argument("cases", nargs="+", choices=sorted(CASES), metavar="CASE")
    options = parser.parse_args()
    return run_cases(options.cases, CASES, lambda: Setting(options))


if __name__ == "__main__":
    sys.exit(main())
