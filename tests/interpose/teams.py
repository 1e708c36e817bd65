# SPDX-License-Identifier: BSD-3-Clause
"""Cases about communicators and what they cost."""

from setting import check


def communicators(s):
    """However many there are, the last is offloaded; the service hears of those that are used only."""
    other = s.offloaded("communicators", "400", ranks=2, OFFPATH_STATS_FILE=s.stats)
    check(other.status == 0 and not other.warnings(), str(other))
    for line in s.statistics():
        check(line["offloaded_count"] == 1 and line["native_count"] == 0, f"not offloaded: {line}")
        check(s.kind == "fake" or line["doorbell_count"] < 20, f"the service was woken for nothing: {line}")


def too_many_communicators(s):
    """What leaves the library too few context ids is native, and said."""
    other = s.offloaded("communicators", "600", ranks=2)
    check(other.status == 0 and len(other.warnings()) == 1 and "stay native" in other.err, str(other))


CASES = [communicators, too_many_communicators]
