# SPDX-License-Identifier: BSD-3-Clause
"""Interposition tests of OFFPATH_TRACE: programs do the same, and the recording says of every call what became."""

import glob
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from offpath.trace import parts  # needs nothing but Python itself
from offpath.trace.parts import ONE_SIDED
from setting import check, same


def traced(s, name, *arguments, ranks=4, untraced=None, **changes):
    """The lines of each rank. `untraced`: a run that did the same and was not recorded, where there is one already."""
    untraced = untraced or s.offloaded(name, *arguments, ranks=ranks, **changes)
    check(untraced.status == 0, str(untraced))
    other = s.offloaded(name, *arguments, ranks=ranks, OFFPATH_TRACE=f"{s.folder}/trace", **changes)
    same(untraced, other)
    files = sorted(glob.glob(f"{s.folder}/trace.*"))
    check(len(files) == ranks, f"{len(files)} files of {ranks} ranks")
    recorded = []
    for file in files:
        recorded.append(parts.read(Path(file)))
        os.unlink(file)
        check(recorded[-1][0]["format"] == "offpath-trace" and "end_ns" in recorded[-1][-1], f"{file} is cut short")
    return recorded


def is_something(post):
    """A one-sided call to nobody, or of no bytes, is over at once."""
    return post["root"] >= 0 and post["bytes"] > 0


def check_lines(s, lines):
    """Every operation that went to the service has the service's times once; returns operations by path."""
    posts = {line["op"]: line for line in lines if "op" in line}
    served = [line for line in lines if "served" in line]
    at_service = [number for number, line in posts.items() if line.get("path") == "dpu"]
    done = [number for number in at_service if posts[number]["kind"] not in ONE_SIDED or is_something(posts[number])]
    check(sorted(line["served"] for line in served) == sorted(done),
          f"served {[line['served'] for line in served]}, posted {done}")
    for line in served:
        post = posts[line["served"]]
        check(line["status"] == 0 and line["seen_ns"] >= post["begin_ns"], f"{line} of {post}")
        if s.kind == "real":
            times = [line[name] for name in ("posted_ns", "started_ns", "first_byte_ns", "done_ns") if name in line]
            check(times == sorted(times) and times[0] >= post["begin_ns"] and len(times) >= 3, f"{line} of {post}")
            check(post["kind"] not in ONE_SIDED or line["last_peer"] == post["root"], f"{line} of {post}")
            check(times[-1] <= line["seen_ns"], f"done after it was seen: {line}")
    waited = [number for line in lines if "wait" in line for number in line["wait"]]
    check(set(waited) <= set(posts), f"waited for what was not posted: {waited}")
    once = [number for number in waited if posts[number]["kind"] not in ONE_SIDED]  # those by a request and a flush
    check(len(once) == len(set(once)), f"waited twice: {once}")
    return at_service


def trace_forms(s, form):
    for lines in traced(s, "forms", form, untraced=s.native("forms", "nonblocking")):
        check(check_lines(s, lines), "nothing was offloaded")


def trace_starts(s):
    for lines in traced(s, "persistent", ranks=2):
        kinds = [line["kind"] for line in lines if "op" in line and line.get("path") == "dpu"]
        check(check_lines(s, lines) and {"ialltoall", "iallreduce"} <= set(kinds), f"not offloaded: {kinds}")


def trace_windows(s):
    for lines in traced(s, "rma"):
        check_lines(s, lines)
        kinds = {line["kind"] for line in lines if line.get("path") == "dpu"}
        check(ONE_SIDED <= kinds, f"not offloaded: {ONE_SIDED - kinds}")


def trace_off(s):
    """Nothing can be offloaded: the trace says why."""
    for lines in traced(s, "exchange", untraced=s.native("exchange"), OFFPATH_POLICY="*:host"):
        check("policy" in lines[0]["reason"], str(lines[0]))
        whys = {line.get("why") for line in lines if line.get("path")}
        check("off" in whys and whys <= {"off", "blocking"}, f"why: {whys}")


def trace_sample(s):
    """Of each call site on each communicator the first and then each third; the same on all ranks."""
    chosen = set()
    native = s.native("forms", "nonblocking")
    for lines in traced(s, "forms", "nonblocking", untraced=native, OFFPATH_TRACE_SAMPLE="3"):
        check(check_lines(s, lines) is not None and lines[0]["sample"] == 3, "no sample")
        posts, end = [line for line in lines if "op" in line], lines[-1]
        places = {(line["comm"], line.get("file"), line.get("offset")) for line in posts}
        known = len(posts) + end.get("operations_left_out", 0)
        check(known / 3 <= len(posts) < known / 3 + len(places), f"{len(posts)} of {known}, {len(places)} call sites")
        chosen.add(tuple((line["comm"], line["nth"], line["kind"]) for line in posts))
    check(len(chosen) == 1, "ranks have chosen differently")


CASES = {
    **{
        f"trace_{form}": lambda s, form=form: trace_forms(s, form)
        for form in ("nonblocking", "persistent", "blocking")
    },
    "trace_starts": trace_starts,
    "trace_windows": trace_windows,
    "trace_off": trace_off,
    "trace_sample": trace_sample,
}
