# SPDX-License-Identifier: BSD-3-Clause
"""What is said of every result, whatever the benchmark: whether goals are met, and what speaks against the figures."""

from __future__ import annotations

from collections.abc import Iterator

from offpath.base import console
from offpath.bench import goals, machine_load
from offpath.bench.kit.peers import OWN_THREADS

INTERRUPTED = 130
NO_TABLES = ("meta", "checks", "machine", "summary", "kills")  # of a result
ALONE = "host"  # the peer whose ranks have their cores for themselves


def all_rows(result: dict) -> list[dict]:
    """Of all tables of a result. Each says whether what came out was right: "verified"."""
    return [row for name, table in result.items() if name not in NO_TABLES for row in table]


def wrong_rows(result: dict) -> list[dict]:
    """Also those that do not say so: what nobody has checked is not right."""
    return [row for row in all_rows(result) if not row.get("verified")]


def exit_status(result: dict) -> int:
    """130 after Ctrl-C, 1 when a launch failed or a result was wrong (which is a check), else 0."""
    meta = result["meta"]
    if not meta.get("complete", True):
        return INTERRUPTED
    return 1 if meta.get("failures") or wrong_rows(result) else 0


def judge(result: dict) -> None:
    """Verdicts on its checks, and others on the machine."""
    rows, wrong = all_rows(result), len(wrong_rows(result))
    launches = min([result["meta"].get("runs", 1), *(row["runs"] for row in rows if "runs" in row)])
    result["checks"] = goals.judged(result["checks"], launches)
    result["checks"] += goals.check("results_wrong_count", [wrong] if wrong else [])
    result["meta"]["machine_load"] = machine_load.facts(work_share(result))


def show(result: dict) -> None:
    """Below the tables. The checks come last, in one line, so that they can be grepped."""
    if not all_rows(result):
        console.note("nothing was measured.")
    show_reachable(result["meta"])
    show_doubts(result)
    console.out.print(goals.summary(result["checks"]), markup=False, soft_wrap=True)


def show_reachable(meta: dict) -> None:
    """What the wire itself leaves: nobody can be more efficient than that in this lab."""
    found = meta.get("reachable_efficiency")
    if found:
        sizes = ", ".join(f"{efficiency:.2f} at {size}" for size, efficiency in found.items())
        console.out.print(f"Reachable on this wire (offpath bench wire): {sizes}", markup=False, soft_wrap=True)


def show_doubts(result: dict) -> None:
    """Wrong results, numbers that cannot be, others on the machine."""
    for row in wrong_rows(result):
        console.fail(f"{_labels(row)}: WRONG RESULT. Report this.")
    for row in all_rows(result):
        for name, value in impossible(row):
            console.note(f"noise: repeat ({name} {value:.4g} of {_labels(row)} cannot be).")
    for size, value in result["meta"].get("reachable_efficiency", {}).items():
        if value > 1:
            console.note(f"noise: repeat (reachable efficiency {value:.4g} at {size} cannot be).")
    busy = (result["meta"]["machine_load"] or {}).get("busy")
    if busy:
        console.note(f"the machine was busy: {'; '.join(busy)} (what others took is in the times). Repeat it at rest.")


def impossible(row: dict) -> Iterator[tuple[str, float]]:
    """What no program can reach: more than all, or costs below zero. That is noise, and nothing to be proud of."""
    # Where the MPI's own thread has no core of its own, short waits alone take longer than behind computation.
    known = {"efficiency"} if row.get("peer") in OWN_THREADS else set()
    for name, value in row.items():
        if not isinstance(value, (int, float)) or name in known:
            continue
        part_of_all = name.endswith(("efficiency", "_share")) or name in ("perfect", "slowdown")
        difference = name.endswith(("_more_ns", "_saved_ns"))
        cost = name.endswith(("_ns", "_s", "_us", "_per_byte")) and not difference
        if (part_of_all and value > 1) or (cost and value < 0):
            yield name, value


def work_share(result: dict) -> float:
    """Of their cores, what the computations of ranks got that had them for themselves; 1 where nobody looked."""
    meta = result["meta"]
    cores_each = meta.get("cores_available", 0) / max(1, meta.get("nodes", 1) * meta.get("ppn", 1))
    shares = [row["work_share"] for row in all_rows(result) if row.get("peer") == ALONE and "work_share" in row]
    return min(shares, default=1.0) if cores_each >= 1 else 1.0


def _labels(row: dict) -> str:
    """What says which row it is: words, and the size."""
    words = [value for value in row.values() if isinstance(value, str)]
    return " ".join([*words, *([f"{row['bytes']} bytes"] if "bytes" in row else [])]) or "a row"
