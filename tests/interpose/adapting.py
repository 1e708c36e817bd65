# SPDX-License-Identifier: BSD-3-Clause
"""Cases in which paths change while the program runs. Judged by what was counted, never by time."""

from setting import FORCED, check

# On one node the measured rows offload nothing. What is remembered is advice; exploring may cost all it likes.
ADAPT = {"OFFPATH_POLICY": "", "OFFPATH_MPI_MEMORY": "ialltoall:dpu", "OFFPATH_MPI_ADAPT": "on",
         "OFFPATH_MPI_ADAPT_PERCENT": "100"}


def adapted(s, *arguments, ranks=4, alike=("offloaded_count", "native_count", "why"), **changes):
    """The ranks' statistics of a run; all have decided alike."""
    other = s.offloaded("adapting", *arguments, ranks=ranks, OFFPATH_STATS_FILE=s.stats, **{**ADAPT, **changes})
    check(other.status == 0 and "WRONG" not in other.out, str(other))
    lines = s.statistics()
    check(len(lines) == ranks and all(line["enabled"] for line in lines), str(lines))
    for name in alike:
        check(all(line[name] == lines[0][name] for line in lines), f"ranks differ: {[line[name] for line in lines]}")
    check(all(line["failed_count"] == 0 for line in lines), str(lines[0]))
    return other, lines


def learned_of(lines):
    """By range, from whichever rank speaks for the team."""
    return {name: entry for line in lines for name, entry in line["learned"].items()}


def adapt_slow(s):
    # Each operation of the service takes 200 ms longer to post: it is switched off, and stays off.
    other, lines = adapted(s, "steady", ranks=2, OFFPATH_FAKE_POST_US="200000")
    check(not other.warnings(), str(other))
    (entry,) = learned_of(lines).values()
    check(entry["path"] == "host" and entry["why"] == "adapted" and entry["switches_count"] >= 1, str(entry))
    # 0: the host's own times have changed since the service was tried, so what that cost says nothing any more.
    check(entry["host_ns"] > 0 and (entry["dpu_ns"] == 0 or entry["dpu_ns"] > entry["host_ns"]), str(entry))
    check(lines[0]["why"]["adapted_count"] > 0, str(lines[0]))
    check(lines[0]["native_count"] > 0 and lines[0]["offloaded_count"] > 0, str(lines[0]))


def adapt_modes(s):
    _, lines = adapted(s, "steady", OFFPATH_MPI_ADAPT="off", OFFPATH_POLICY="ialltoall:dpu")
    check(lines[0]["why"] == {"policy_count": 100} and lines[0]["offloaded_count"] == 100, str(lines[0]))
    _, lines = adapted(s, "steady", OFFPATH_MPI_ADAPT="freeze")
    check(lines[0]["why"] == {"remembered_count": 100} and lines[0]["offloaded_count"] == 100, str(lines[0]))
    # What the user says is not advice.
    _, lines = adapted(s, "steady", OFFPATH_POLICY="ialltoall:dpu", OFFPATH_FAKE_POST_US="1000")
    check(lines[0]["offloaded_count"] == 100 and not learned_of(lines), str(lines[0]))


def adapt_preferences(s):
    for mode in ("on", "off"):
        _, lines = adapted(s, "preferences", OFFPATH_MPI_ADAPT=mode, OFFPATH_MPI_ADAPT_PERCENT="1",
                           OFFPATH_POLICY="ialltoall:dpu" if mode == "off" else "")
        # host 10, dpu 20, frozen as the policy has it 10; then dpu 10, host 20, frozen 10
        check(lines[0]["why"]["forced_count"] == 60, str(lines[0]))
        check((lines[0]["native_count"], lines[0]["offloaded_count"]) == (30, 50), str(lines[0]))


def adapt_freed(s):
    adapted(s, "freed")


def adapt_orders(s):
    _, lines = adapted(s, "orders")
    check(learned_of(lines), "nothing was adapted")
    adapted(s, "orders", ranks=3, OFFPATH_FAKE_POST_US="500")


def adapt_threads(s):
    adapted(s, "threads", ranks=2)


def adapt_ahead(s):
    adapted(s, "ahead", ranks=3)


def adapt_burst(s):
    """Nobody waits for an agreement in a call that MPI says is local."""
    adapted(s, "burst", ranks=3)


def adapt_held(s):
    """What waits for an agreement is posted although its rank is blocked in a call that is not ours."""
    _, lines = adapted(s, "held", ranks=3)
    check(learned_of(lines), "nothing was adapted")
    # So is what the service has no room for.
    _, lines = adapted(s, "full", ranks=3, OFFPATH_MPI_ADAPT="off", OFFPATH_POLICY="ialltoall:dpu")
    check(lines[0]["offloaded_count"] == 3 * 1200, str(lines[0]))


def adapt_typed(s):
    """What starts late only because others before it do has its datatypes although the program has freed them."""
    _, lines = adapted(s, "typed", ranks=3, OFFPATH_POLICY="ialltoallv:64K-inf:dpu")
    check(learned_of(lines), "nothing was adapted")


def adapt_unmoved(s):
    """Where nothing could move on what waits for an agreement, there are none. With MPICH a thread does."""
    none_left = f"{s.build}/tests/interpose/libno_threads.so"
    other = s.run([s.program("adapting"), "steady"], 2, f"{none_left}:{s.library}",
                  **{**FORCED, **ADAPT}, OFFPATH_STATS_FILE=s.stats)
    check(other.status == 0 and "WRONG" not in other.out, str(other))
    check(len(other.warnings()) == 1 and "MPI_THREAD_MULTIPLE" in other.err, str(other))
    lines = s.statistics()
    check(all(line["why"] == {"remembered_count": 100} for line in lines), str(lines))


def adapt_named(s):
    _, lines = adapted(s, "named", OFFPATH_MPI_COMM_POLICY="elsewhere=dpu,on the host=host")
    check(lines[0]["why"]["forced_count"] >= 180, str(lines[0]))
    check(lines[0]["native_count"] >= 180, str(lines[0]))


def adapt_bad(s):
    for name, value in (("OFFPATH_MPI_ADAPT", "maybe"), ("OFFPATH_MPI_COMM_POLICY", "x=y"),
                        ("OFFPATH_MPI_MEMORY", "ialltoall:dpux")):
        other = s.offloaded("adapting", "steady", ranks=2, **{**ADAPT, name: value})
        check(other.status == 0 and len(other.warnings()) == 1 and value in other.err, str(other))


def adapt_long(s):
    """Without what is remembered the run begins as the first one did."""
    other = s.offloaded("adapting", "steady", "20", ranks=2, OFFPATH_STATS_FILE=s.stats, OFFPATH_MPI_ADAPT="freeze",
                        OFFPATH_POLICY="ialltoall:dpu", OFFPATH_MPI_MEMORY=",".join(["ialltoall:1M-2M:host"] * 1000))
    check(other.status == 0 and len(other.warnings()) == 1 and "MEMORY is left out" in other.err, str(other))
    lines = s.statistics()
    check(all(line["offloaded_count"] == 20 for line in lines), str(lines))


def adapt_lost(s):
    # Words and agreements do not meet, and all stay together.
    for operation in (6, 9, 12, 17):  # the first agreement is open from the 10th to the 18th call
        # How many were posted before a rank heard of the loss is its own affair.
        _, lines = adapted(s, "steady", ranks=2, alike=("why",), OFFPATH_FAKE_LOSE=f"1:{operation}:{operation - 1}")
        check(all(line["why"]["lost_count"] > 0 for line in lines), str(lines))
        check(not learned_of(lines), str(lines))  # a lost service teaches nothing


CASES = (adapt_slow, adapt_modes, adapt_preferences, adapt_freed, adapt_orders, adapt_threads, adapt_ahead, adapt_burst,
         adapt_held, adapt_typed, adapt_unmoved, adapt_named, adapt_bad, adapt_long, adapt_lost)
