# SPDX-License-Identifier: BSD-3-Clause
"""Interposition tests of telemetry where ranks see different file systems, as those of different nodes do."""

import glob
import os
from pathlib import Path

from setting import FORCED, check, same
from tracing import parts

RANKS = 4
LOST = "/nonexistent/folder/rank"


def run(s, variable, path, blind, program="exchange"):
    """Ranks of which `blind` (a shell pattern) cannot reach the file that the variable names."""
    script = (f'rank=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}; case $rank in {blind}) export {variable}={LOST};; esac; '
              'exec "$0" "$@"')
    command = ["sh", "-c", script, s.program(program)]
    return s.run(command, RANKS, s.library, **{**FORCED, "OFFPATH_LOG": "off", variable: path})


def recorded(s):
    files = sorted(glob.glob(f"{s.folder}/rank.*"))
    lines = [parts.read(Path(file)) for file in files]
    for file in files:
        os.unlink(file)
    return lines


def telemetry_apart(s):
    """No rank waits for ever, and what blind ranks recorded arrives all the same, if anybody can write it."""
    native = s.native("exchange")
    check(native.status == 0, str(native))
    for variable, blind, expected in (("OFFPATH_TRACE", "0|3", RANKS), ("OFFPATH_PROFILE", "1|2", RANKS),
                                      ("OFFPATH_TRACE", "*", 0)):
        same(native, run(s, variable, f"{s.folder}/rank", blind))
        lines = recorded(s)
        check([rank[0]["rank"] for rank in lines] == list(range(expected)), f"{blind} blind: {len(lines)} ranks")
        check(all("end_ns" in rank[-1] and len(rank) > 3 for rank in lines), f"{blind} blind: cut short")


def telemetry_some(s):
    """A variable that only some ranks have, as those of one program of several, stops nobody."""
    native = s.native("exchange")
    check(native.status == 0, str(native))
    script = f'[ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" = 1 ] && export OFFPATH_TRACE={s.folder}/rank; exec "$0"'
    same(native, s.run(["sh", "-c", script, s.program("exchange")], RANKS, s.library, **FORCED))
    check(not recorded(s), "a part was recorded")


def telemetry_statistics(s):
    """One rank has all lines: the first that finds the file there."""
    native = s.native("exchange")
    check(native.status == 0, str(native))
    for blind, there in (("1|2|3", False), ("0|1", True)):
        if there:
            open(s.stats, "w").close()
        same(native, run(s, "OFFPATH_STATS_FILE", s.stats, blind))
        check([line["rank"] for line in s.statistics()] == list(range(RANKS)), f"{blind} blind")
    same(native, run(s, "OFFPATH_STATS_FILE", s.stats, "*"))
    check(not os.path.exists(s.stats), "written by whom?")


CASES = {f.__name__: f for f in (telemetry_apart, telemetry_some, telemetry_statistics)}
