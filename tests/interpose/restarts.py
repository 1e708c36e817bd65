# SPDX-License-Identifier: BSD-3-Clause
"""Cases in which another service takes the place of one that runs, as by `offpath service restart`, and one is lost."""

import contextlib
import glob
import os
import random
import re
import shutil
import signal
import sys
import time

import losses
from setting import FORCED, check, wait_for, wait_until

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from offpath.base.errors import UserError  # noqa: E402
from offpath.telemetry import observation  # noqa: E402

SETTLED_S = 0.5  # then those that look have gone on as far as they can
SOON_S = 4.0  # a loss that is found by waiting takes ten
MESSAGES = {"OFFPATH_POLICY": "*:dpu,send:2K-inf:dpu"}


def restart(s):
    """Of the one service that is at the socket: the other one."""
    (path,) = glob.glob(f"{s.folder}/*.sock")
    return observation.replace(path)[0]


def restarted_while(s, act, parts, **changes):
    """Warnings and statistics of a program of that many parts, during each of which `act` does something."""
    changes = {**FORCED, "OFFPATH_STATS_FILE": s.stats, **changes}
    with s.running([s.program("lost_again"), s.folder, str(parts)], 4, changes, s.library) as process:
        for part in range(parts):
            wait_for(f"{s.folder}/ready-{part}")
            act(part)
            open(f"{s.folder}/go-{part}", "w").close()
        other = s.collect(process)
    check(other.status == 0 and "failed 0" in other.out and "wrong" not in other.out, str(other))
    lines = s.statistics()
    for path in (*glob.glob(f"{s.folder}/ready-*"), *glob.glob(f"{s.folder}/go-*")):
        os.unlink(path)
    return other, lines


def restarted(s, **changes):
    """Three in a row: nothing is lost, said, or done natively, and those that were replaced end."""
    gone = set()

    def act(part):
        before = set(s.service_pids())
        after = restart(s)
        check(after not in before and after in s.service_pids(), f"service {after}, where {before} were")
        gone.update(before)

    other, lines = restarted_while(s, act, 3, **changes)
    check(not other.err, str(other))
    for line in lines:
        check("loss" not in line and line["failed_count"] == 0, str(line))
        collective = line["collectives"]["ialltoall"]
        check(collective["offloaded_count"] > 1000 and collective["native_count"] == 0, str(line))
    return lines


def restarted_messages(s):
    """Messages, too: all but the synchronous ones go on with services."""
    for line in restarted(s, **MESSAGES):
        check(line["messages"]["offloaded_count"] > line["messages"]["native_count"], str(line))


def restarted_ends(s):
    """The one that was replaced ends while the job runs."""

    def act(part):
        (before,) = s.service_pids()
        after = restart(s)
        open(f"{s.folder}/go-{part}", "w").close()
        wait_until(lambda: s.service_pids() == [after], f"{before} has ended")

    restarted_while(s, act, 3)


def restarted_refused(s):
    """One that ends at once, or is of another release, takes no place: one line says so. A good one does then."""
    program = f"{s.folder}/offpathd"
    shutil.copy(f"{s.build}/bin/offpathd", program)
    foreign = observation.REPLY.pack(observation.LINK_VERSION + 1, 0, 0, 1, 0, 0, 1, 0, b"")
    bad = {
        0: ("ends as soon as it is started", "#!/bin/sh\nexit 3\n"),
        1: ("of a release that", "#!/usr/bin/env python3\nimport socket, time\n"
                                 "guest = socket.socket(fileno=3).accept()[0]\n"
                                 f"guest.recv(1000), guest.send({foreign!r}), time.sleep(60)\n"),
    }  # fmt: skip

    def put(text):
        os.rename(program, f"{program}.good")
        with open(program, "w") as file:
            file.write(text)
        os.chmod(program, 0o755)

    def act(part):
        (before,) = s.service_pids()
        if part not in bad:
            check(restart(s) != before, "another one is there")
            return
        reason, text = bad[part]
        put(text)
        try:
            raise AssertionError(f"{restart(s)} took its place")
        except UserError as error:
            check(reason in str(error) and "\n" not in str(error), str(error))
        os.rename(f"{program}.good", program)
        check(s.service_pids() == [before] and not glob.glob(f"{s.folder}/*.next"), "all is as it was")

    other, lines = restarted_while(s, act, 3, OFFPATH_SERVICE_PATH=program)
    check(not other.err and all("loss" not in line for line in lines), str(other))


def restarted_in_steps(s, story, ranks, act, moments=2, **changes):
    """Of restart_steps: what `act` does at each of its moments is not noticed, and nobody waits for long."""
    changes = {**FORCED, "OFFPATH_STATS_FILE": s.stats, **changes}
    with s.running([s.program("restart_steps"), s.folder, story], ranks, changes, s.library) as process:
        for moment in range(moments):
            wait_for(f"{s.folder}/ready-{moment}")
            act(moment)
            open(f"{s.folder}/go-{moment}", "w").close()
        other = s.collect(process)
    right = other.status == 0 and "wrong" not in other.out and not other.err
    check(right and float(re.search(r"longest (.*)", other.out)[1]) < SOON_S, str(other))
    lines = s.statistics()
    for line in lines:
        collective = line["collectives"]["iallreduce"]
        check("loss" not in line and collective["native_count"] == 0, str(line))
    return lines


def restarted_twice(s):
    """The ranks of a node say that they are at two services, one of which was replaced. They go to the last one."""

    def act(moment):
        if moment == 1:
            time.sleep(SETTLED_S)
        before = s.service_pids()
        check(restart(s) not in before, "another one is there")
        if moment == 0:
            time.sleep(SETTLED_S)

    restarted_in_steps(s, "twice", 2, act)


def restarted_unused(s):
    """A rank that has moved on does what another one begins at the old service, where it has never used that."""

    def act(moment):
        if moment == 0:
            restart(s)
            time.sleep(SETTLED_S)

    restarted_in_steps(s, "unused", 3, act)


def restarted_making(s):
    """A communicator goes on while a rank makes a persistent collective on it, which reads nothing of what is gone."""

    def act(moment):
        if moment == 0:
            restart(s)
        else:
            time.sleep(SETTLED_S)

    # What was freed is not what it was, at once.
    changes = {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    restarted_in_steps(s, "persistent", 2, act, **changes)


def held_by_ranks(s):
    """By process of restart_steps: descriptors, threads, and bytes of sessions that are mapped."""
    held = {}
    for rank in s.pids("restart_steps"):
        mapped = 0
        with open(f"/proc/{rank}/maps") as file:
            for line in file:
                if "memfd:offpath-session" in line:
                    begin, end = line.split()[0].split("-")
                    mapped += int(end, 16) - int(begin, 16)
        held[rank] = len(os.listdir(f"/proc/{rank}/fd")), len(os.listdir(f"/proc/{rank}/task")), mapped
    return held


def restarted_often(s, **changes):
    """What is left of a session does not grow with the number of restarts: of nothing that a process has few of."""
    first = {}

    def is_as_at_first():
        now = held_by_ranks(s)
        same = now.keys() == first.keys() and all(now[rank][:2] == first[rank][:2] for rank in first)
        return same and all(now[rank][2] <= first[rank][2] + (4 << 20) for rank in first)

    def act(moment):
        if moment == 0:
            first.update(held_by_ranks(s))
            check(len(first) == 2, str(first))
        after = restart(s)
        wait_until(lambda: s.service_pids() == [after], "the one before has ended")
        wait_until(is_as_at_first, f"restart {moment}: {held_by_ranks(s)}, where {first} was", 20)

    return restarted_in_steps(s, "often", 2, act, 8, **changes)


def restarted_often_messages(s):
    """Room for messages is left behind, too, once they have been received."""
    for line in restarted_often(s, **MESSAGES):
        check(line["messages"]["offloaded_count"] > line["messages"]["native_count"], str(line))


def killed_around(s, seeds, of_the_old, **changes):
    """One of the two services is killed at some moment of the change. What was lost may be said, once."""
    for seed in seeds:
        moments = random.Random(seed)
        other, _ = restarted_while(s, lambda _, by=moments: kill_one(s, of_the_old, by), 1, **changes)
        check(len(other.warnings()) <= 1 and "all is native" not in other.err, f"seed {seed}: {other}")


def kill_one(s, of_the_old, moments):
    (before,) = s.service_pids()
    after = restart(s)
    time.sleep(moments.choice((0, moments.uniform(0, 0.03))))
    victim = before if of_the_old else after
    with contextlib.suppress(ProcessLookupError):  # the old one may have ended
        os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in s.service_pids(), f"{victim} is gone")
    time.sleep(0.2)  # ranks may hear of it before the one that is behind goes on


def restarted_old_killed(s):
    killed_around(s, range(4), True, **MESSAGES)


def restarted_new_killed(s):
    killed_around(s, range(4), False, **MESSAGES)


def restarted_killed_long(s):
    for of_the_old in (True, False):
        killed_around(s, range(4, 40), of_the_old, **MESSAGES)


def restarted_random(s):
    """Random programs that block in native calls, each with a restart at some moment, which none of them notices."""
    for seed in range(1, 9):
        ready, go = f"{s.folder}/ready-{seed}", f"{s.folder}/go-{seed}"
        changes = {**FORCED, **MESSAGES, "OFFPATH_MPI_LOSS_TIMEOUT_MS": "600000"}
        words = ["--seed", str(seed), "--ready", ready, "--until", go, "--kinds", losses.KINDS, "--return-errors"]
        words += ["--persistent"] if s.mpi == "openmpi" else []  # they are made all the time
        with s.running([s.program("faults", "bench"), *words], 2 + seed % 3, changes, s.library) as process:
            wait_for(ready)
            time.sleep(random.Random(seed).uniform(0, 0.1))
            (before,) = s.service_pids()
            check(restart(s) != before, "another one is there")
            time.sleep(0.1)
            open(go, "w").close()
            other = s.collect(process)
        right = other.status == 0 and "errors: 0\n" in other.out and "verified: yes" in other.out
        check(right and not other.err, f"seed {seed}: {other}")
        wait_until(lambda: not s.service_pids(), "the services end")


CASES = (restarted, restarted_twice, restarted_unused, restarted_making, restarted_often, restarted_often_messages,
         restarted_random, restarted_messages, restarted_ends,
         restarted_refused, restarted_old_killed, restarted_new_killed, restarted_killed_long)
