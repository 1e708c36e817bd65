# SPDX-License-Identifier: BSD-3-Clause
"""Cases in which the arguments of one rank only are wrong: no rank may take another path than the others for that."""

from setting import check, statistics


def aliases(s):
    """Not compared: MPICH refuses it natively, on that rank only."""
    stats = f"{s.folder}/stats.json"
    other = s.offloaded("aliases", ranks=3, OFFPATH_STATS_FILE=stats)
    check(other.status == 0 and not other.warnings(), str(other))
    lines = statistics(stats)
    check(all(line["offloaded_count"] == 18 and line["native_count"] == 0 for line in lines), str(lines))


CASES = [aliases]
