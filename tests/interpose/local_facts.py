# SPDX-License-Identifier: BSD-3-Clause
"""Cases in which arguments of one rank are wrong, or missing: no rank may take another path than others for that."""

from setting import Skipped, check, same


def aliases(s):
    """Not compared: MPICH refuses it natively, on that rank only."""
    other = s.offloaded("aliases", ranks=3, OFFPATH_STATS_FILE=s.stats)
    check(other.status == 0 and not other.warnings(), str(other))
    lines = s.statistics()
    check(all(line["offloaded_count"] == 18 and line["native_count"] == 0 for line in lines), str(lines))


LENGTHS = ["500000", "300000", "300000", "500000", "229376", "114688", "114688", "229376", "64", "64", "100", "50",
           "50", "100", "20", "0", "300000", "300000"]


def lengths(s):
    """The length of a broadcast that the root states differs from that of the others. Natively Open MPI reads or writes
    beyond a buffer in some cases."""
    if s.kind == "fake":
        raise Skipped("the stand-in does not find it out")
    other = s.offloaded("lengths", *LENGTHS, ranks=3, OFFPATH_STATS_FILE=s.stats, OFFPATH_MPI_BLOCKING="bcast",
                        OFFPATH_SERVICE_SILENCE_MS="800")
    check(other.status == 0 and not other.warnings(), str(other))
    shorter = "success" if s.mpi == "openmpi" else "other"
    expected = []
    for sent, taken in zip(map(int, LENGTHS[::2]), map(int, LENGTHS[1::2])):
        verdict = "truncated" if sent > taken > 0 else shorter if sent < taken else "success"
        for form in ("", " blocking"):
            verdicts = ["success", verdict, verdict]
            expected += [f"rank {rank}, {sent} to {taken}{form}: {verdicts[rank]}" for rank in range(3)]
    check(sorted(other.out.splitlines()) == sorted(expected), str(other))
    check(all(line["offloaded_count"] == len(LENGTHS) for line in s.statistics()), "not all were offloaded")


def insignificant(s):
    """What means nothing at a rank may be anything there, so it is no reason to take another path."""
    other = s.offloaded("insignificant", ranks=3, OFFPATH_STATS_FILE=s.stats)
    same(s.native("insignificant", ranks=3), other)
    lines = s.statistics()
    check(all(line["offloaded_count"] == 22 and line["native_count"] == 0 for line in lines), str(lines))


def no_memory(s):
    """One rank has no memory for its part of what all make: then that is native on all, and the rank says so."""
    # Persistent collectives of MPICH 4.0 crash by themselves.
    words = ["persistent"] if s.mpi == "openmpi" else []
    other = s.offloaded("no_memory", *words, ranks=3, OFFPATH_POLICY="*:dpu,write:8K-inf:dpu,read:8K-inf:dpu")
    check(other.status == 0 and "WRONG" not in other.out, str(other))
    warnings = other.warnings()
    check(warnings and all("stays native on all its ranks, as rank" in line for line in warnings), str(other))


CASES = [aliases, lengths, insignificant, no_memory]
