# SPDX-License-Identifier: BSD-3-Clause
"""Cases in which a service is lost: at an exact operation of the fake client, or killed for real."""

import os
import random
import re
import signal
import time

from setting import FORCED, all_stopped, check, wait_for, wait_until


def lost(s, lose, *arguments, failed=None):
    changes = {"OFFPATH_POLICY": "*:dpu,ialltoallv:0-2K:host"} if "pairs" in arguments else {}
    other = s.offloaded("lost", *(arguments or ("idle",)), OFFPATH_FAKE_LOSE=lose, **changes)
    check(other.status == 0 and "after the loss: ok" in other.out, str(other))
    check("unexpected tag" not in other.err, f"words were left over: {other}")
    counts = re.search(r"failed (\d+), right (\d+) of (\d+)", other.out)
    check(failed is None or int(counts[1]) == failed, str(other))


def lost_idle(s):
    if s.kind == "real":
        kill_service(s, "idle", failed=0)
        return
    # The service dies with the ninth operation, of which it has begun none since the eighth: nothing is lost.
    lost(s, "1:9:8", failed=0)
    lost(s, "0:16:8", failed=0)
    lost(s, "0:9:8,1:9:8,2:9:8,3:9:8", failed=0)


def lost_begun(s):
    # Two operations were begun, the rest can be done again.
    lost(s, "1:12:10", "idle")
    lost(s, "3:16:16", "idle")


def lost_twice(s):
    lost(s, "0:12:10,1:13:11")
    lost(s, "0:12:8,3:16:12")


def parted(s):
    """Services that have lost each other do not agree on what had begun; the ranks must."""
    for part in ("9:1", "12:0"):
        for kind in ("alltoall", "in_place", "pairs"):
            other = s.offloaded("lost", "idle", kind, OFFPATH_FAKE_PART=part, OFFPATH_SERVICE_SILENCE_MS="700",
                                OFFPATH_STATS_FILE=s.stats)
            check(other.status == 0 and "failed 0" in other.out and "after the loss: ok" in other.out, str(other))
            check(len(other.warnings()) == 1 and "heard nothing of" in other.err and "700 ms" in other.err, str(other))
            lines = s.statistics()
            check(all("700 ms" in line["loss"] for line in lines), str(lines))


def starved(s):
    """A service that gets no processor is waited for; one line says so, and that of each rank."""
    other = s.offloaded("exchange", ranks=2, OFFPATH_FAKE_STARVED_MS="1500", OFFPATH_STATS_FILE=s.stats)
    check(other.status == 0 and not other.warnings(), str(other))
    check(other.starved.count("waits for a processor") == 1 and "1500 ms" in other.starved, str(other))
    check(all(line["starved_ns"] == 1500000000 and "loss" not in line for line in s.statistics()), str(other))


def lost_in_place(s):
    lost(s, "1:9:8", "idle", "in_place", failed=0)
    lost(s, "0:12:10,1:13:11", "idle", "in_place")


def lost_kinds(s):
    for kind in ("allreduce", "bcast", "neighbor"):
        # Only where none is done without all. Else others may be ahead of rank 1, and what they have done is final.
        lost(s, "1:9:8", "idle", kind, failed=0 if kind == "allreduce" else None)
        lost(s, "2:12:10", "idle", kind)


def lost_pairs(s):
    # Two ranks exchange long blocks in each operation, and all of them short ones; nine operations a round.
    lost(s, "0:10:9,1:10:9,2:10:9,3:10:9", "idle", "pairs", failed=0)
    # A pair that keeps its services may end an operation, and with it all before it that others have not.
    for ranks_lost in ("1:10:9", "0:10:9,1:10:9", "1:12:11", "0:12:10,1:13:11", "2:16:14"):
        lost(s, ranks_lost, "idle", "pairs")


def lost_persistent(s):
    # Each has a team of its own, and starts the second of three operations.
    lost(s, "1:2:1", "idle", "persistent", failed=0)
    lost(s, "0:2:2", "idle", "persistent")


def kill_service(s, mode, failed=None, program="lost", **more):
    ready, go = f"{s.folder}/ready-{mode}", f"{s.folder}/go-{mode}"
    changes = {**FORCED, "LOST_READY": ready, "LOST_GO": go, "LOST_SHOW": "1", **more}
    with s.running([s.program(program), mode], 4, changes, s.library) as process:
        deadline = time.monotonic() + 60
        while not os.path.exists(ready):
            check(time.monotonic() < deadline and process.poll() is None, f"not ready: {s.texts(process.poll())}")
            time.sleep(0.002)
        pids = s.service_pids()
        check(len(pids) == 1, f"expected one service, found {pids}")
        os.kill(pids[0], signal.SIGKILL)
        while pids[0] in s.service_pids():
            time.sleep(0.002)
        with open(go, "w"):
            pass
        result = s.collect(process)
    os.unlink(ready)
    os.unlink(go)
    check(result.status == 0 and "after the loss: ok" in result.out, str(result))
    if failed is not None:
        counts = re.search(r"failed (\d+), right (\d+) of (\d+)", result.out)
        check(int(counts[1]) == failed, str(result))
    warnings = result.warnings()
    check(len(warnings) == 1 and "another service takes its place" in warnings[0], f"not that one warning: {result}")
    return result


def killed_again(s, kills, victims_of, appears=True, **changes):
    """Warnings and statistics of a program whose services are killed, each time those that were not there before.
    `appears`: another one comes."""
    changes = {**FORCED, "OFFPATH_POLICY": "*:dpu,send:2K-inf:dpu", "OFFPATH_STATS_FILE": s.stats, **changes}
    with s.running([s.program("lost_again"), s.folder, str(kills)], 4, changes, s.library) as process:
        gone = set()
        for kill in range(kills):
            wait_for(f"{s.folder}/ready-{kill}")
            found = set(s.service_pids()) - gone
            for service in victims_of(kill, found):
                os.kill(service, signal.SIGKILL)
            gone |= found
            if kill < 2 and appears:
                wait_until(lambda: set(s.service_pids()) - gone, "there is another service")  # noqa: B023
                time.sleep(0.2)  # the ranks may hear of it before the one that is behind goes on
            open(f"{s.folder}/go-{kill}", "w").close()
        other = s.collect(process)
    check(other.status == 0 and "failed 0" in other.out and "wrong" not in other.out, str(other))
    return other.warnings(), s.statistics()


def lost_again(s, **changes):
    """Another service takes the place of a lost one, for all ranks alike; that of the third within a minute none."""
    warnings, lines = killed_again(s, 3, lambda _, found: found, **changes)
    check(len(warnings) == 4 and "three were lost within a minute" in warnings[-1], str(warnings))
    for line in lines:
        # Two parts at other services, and one natively.
        for counts in (line["collectives"]["ialltoall"], line["messages"], line["windows"]):
            check(counts["offloaded_count"] > counts["native_count"] > 0, str(line))


def lost_silent(s):
    """No service takes the place of one that was silent, as that may be silent, too."""

    def stop(_, found):
        for service in found:
            os.kill(service, signal.SIGSTOP)
        return ()

    warnings, lines = killed_again(s, 1, stop, appears=False, OFFPATH_SERVICE_SILENCE_MS="700")
    check(len(warnings) == 1 and "no sign of life" in warnings[0] and "all is native now" in warnings[0], str(warnings))
    check(all(line["collectives"]["ialltoall"]["native_count"] > 400 for line in lines), str(lines))


def lost_again_asking(s):
    """As in a job of many ranks, nobody has room for messages before it has asked for it, at each service."""
    lost_again(s, OFFPATH_MPI_STAGING=str(8 << 20))


def lost_words(s):
    """The program of conformance says which operations failed, and shows no buffers of those as wrong data."""
    # Of a call for several requests that asks for no statuses, MPI says no more than that there was an error.
    words = ("Offpath: ", "MPI_ERR_IN_STATUS")
    # A root has told its program of the end before others have their parts: what the fake service loses then fails.
    failures = 0
    for mode, place in ((("--match", "Iscatter "), "1:9:1"), (("--random", "--steps", "60"), "1:12:10")):
        command = [s.program("conformance", "tests/conformance"), *mode]
        other = s.run(command, 4, s.library, **FORCED, OFFPATH_FAKE_LOSE=place)
        failed = [line for line in other.out.splitlines() if " FAILED " in line]
        check(all(any(word in line for word in words) for line in failed), f"{mode}: other words: {other}")
        check("WRONG" not in other.out, f"{mode}: {other}")
        failures += len(failed)
    check(failures > 0, "nothing failed")


def lost_freed(s):
    """Ranks that have freed a communicator answer those that wait there. Nobody gives up within this test."""
    other = s.offloaded("lost_freed", ranks=4, OFFPATH_FAKE_LOSE="1:2:1", OFFPATH_MPI_LOSS_TIMEOUT_MS="600000")
    check(other.status == 0 and "freed it: ok" in other.out, str(other))
    check("failed 0" not in other.out, str(other))


def lost_at_end(s):
    """The same of ranks that are at their end, where the proxies of target regions wait for all."""
    plugin = f"{s.build}/lib/libomptarget.rtl.x86_64.so"
    other = s.run([s.program("lost_freed"), "ends"], 4, f"{s.library}:{plugin}", **FORCED, OFFPATH_FAKE_LOSE="1:2:1",
                  OFFPATH_MPI_LOSS_TIMEOUT_MS="600000")
    check(other.status == 0 and all(f"rank {rank} failed 0" in other.out for rank in (2, 3)), str(other))
    check("rank 1 failed 0" not in other.out, str(other))


def lost_busy(s):
    kill_service(s, "busy")


def stopped_then_killed(s, command, ranks, acts, **changes):
    """Of a program whose service is stopped, and killed once calls are posted that it does not take. Nobody gives up
    within this test: who waits is answered, or it fails."""
    ready, go, posted, killed = acts
    changes = {**FORCED, "OFFPATH_MPI_LOSS_TIMEOUT_MS": "600000", **changes}
    with s.running(command, ranks, changes, s.library) as process:
        wait_for(ready)
        (service,) = s.service_pids()
        os.kill(service, signal.SIGSTOP)
        wait_until(lambda: all_stopped(service), f"all threads of {service} are stopped")
        open(go, "w").close()
        wait_for(posted)
        os.kill(service, signal.SIGKILL)
        wait_until(lambda: service not in s.service_pids(), f"{service} is gone")
        open(killed, "w").close()
        return s.collect(process)


def lost_blocked(s):
    """Ranks that block in calls that are not ours answer, and do their part, while one waits for what was lost."""
    ranks, calls = 9, 16
    for first in range(0, calls, ranks - 1):
        acts = [f"{s.folder}/{name}-{first}" for name in ("ready", "go", "posted", "killed")]
        names = dict(zip(("LOST_READY", "LOST_GO", "KILL_READY", "KILL_GO"), acts))
        other = stopped_then_killed(s, [s.program("lost_blocked"), s.folder, str(first)], ranks, acts, **names)
        check(other.status == 0 and "while blocked: ok" in other.out and "later ones: ok" in other.out, str(other))
        # None was begun at the service: all of them are done natively.
        check("failed 0" in other.out and len(other.warnings()) == 1, str(other))


def lost_unused(s):
    """A rank that has not used a communicator answers there, too."""
    acts = [f"{s.folder}/{name}" for name in ("ready", "go", "posted", "killed")]
    other = stopped_then_killed(s, [s.program("lost_unused"), s.folder], 4, acts)
    check(other.status == 0 and "without a part: ok" in other.out, str(other))


KINDS = "ialltoall,iallreduce,ibcast,isend,issend,probe"


def killed_at_random(s, seeds):
    """Random programs that block in native calls, each killed at a random moment. Nobody gives up within this test."""
    longest = 0.0
    for seed in seeds:
        ready, go = f"{s.folder}/ready-{seed}", f"{s.folder}/go-{seed}"
        changes = {**FORCED, "OFFPATH_POLICY": "*:dpu,send:2K-inf:dpu", "OFFPATH_MPI_LOSS_TIMEOUT_MS": "600000"}
        ranks = 2 + seed % 3
        words = ["--seed", str(seed), "--ready", ready, "--until", go, "--kinds", KINDS, "--return-errors"]
        with s.running([s.program("faults", "bench"), *words], ranks, changes, s.library) as process:
            wait_for(ready)
            time.sleep(random.Random(seed).uniform(0, 0.1))
            services = s.service_pids()
            for service in services:
                os.kill(service, signal.SIGKILL)
            open(go, "w").close()
            other = s.collect(process)
            check(len(services) == 1, f"seed {seed}, {ranks} ranks: services {services}: {other}")
        right = other.status == 0 and "errors: 0\n" in other.out and "verified: yes" in other.out
        check(right, f"seed {seed}, {ranks} ranks: {other}")
        check(len(other.warnings()) == 1, f"seed {seed}: not exactly one warning: {other}")
        longest = max(longest, float(re.search(r"longest wait: ([\d.]+)", other.out)[1]))
    print(f"killed {len(seeds)} services, longest wait {longest:.3f} s")


def lost_random(s):
    killed_at_random(s, range(1, 6))


def lost_random_long(s):
    killed_at_random(s, range(6, 156))


CASES = (lost_blocked, lost_unused, lost_again, lost_again_asking, lost_silent, lost_random, lost_random_long,
         lost_idle, lost_begun, lost_twice, parted, starved, lost_in_place, lost_kinds, lost_pairs, lost_persistent,
         lost_words, lost_freed, lost_at_end, lost_busy)
