# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks report at MPI_Finalize, read back and put into one line."""

import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from offpath.mpis import TITLES
from offpath.sizes import rough_size_text


@contextlib.contextmanager
def private_file(folder: Path | None = None) -> Iterator[str]:
    """A file for OFFPATH_STATS_FILE that is gone afterwards. In `folder`: gone with that if we are killed."""
    handle, name = tempfile.mkstemp(prefix="offpath-stats-", suffix=".jsonl", dir=folder)
    os.close(handle)
    try:
        yield name
    finally:
        Path(name).unlink(missing_ok=True)


def read(name: str, skip_bytes: int = 0) -> list[dict]:
    """The ranks' lines behind `skip_bytes`; a line cut short by a crash is left out."""
    try:
        content = Path(name).read_bytes()[skip_bytes:]
    except FileNotFoundError:
        return []
    ranks = []
    for line in content.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                ranks.append(entry)
    return ranks


def summary(ranks: list[dict]) -> str:
    """One line: what was offloaded, what stayed on the host and why."""
    if not ranks:
        return "no rank reported (the program does not use MPI, or did not reach MPI_Finalize)."
    offloaded, native, failed = (_sum(ranks, f"{what}_count") for what in ("offloaded", "native", "failed"))
    nodes = {rank.get("node") for rank in ranks}
    mpi = ranks[0].get("mpi", "")
    text = f"{_many(len(ranks), 'rank')} on {_many(len(nodes), 'node')}"
    text += f" ({TITLES.get(mpi, mpi)}): " if mpi else ": "
    text += f"{_many(offloaded, 'operation')} offloaded"
    if offloaded:
        text += f" ({'; '.join([rough_size_text(_sum(ranks, 'offloaded_bytes')), *_most_offloaded(ranks)])})"
    text += f", {native} on the host"
    reasons = Counter(str(rank["reason"]) for rank in ranks if rank.get("reason"))
    if reasons:
        text += ": " + "; ".join(reason.rstrip(".") for reason, _ in reasons.most_common(3))
    elif native:
        text += _why_native(native, _sum([rank.get("why", {}) for rank in ranks], "form_count"))
    if failed:
        text += f"; {failed} FAILED"
    return text + "."


def _why_native(native: int, forms: int) -> str:
    """`forms`: calls that the service does not do."""
    if not forms:
        return " by policy"
    unserved = "in a form that the service does not do (as user-defined operators)"
    return f" {unserved}" if forms == native else f", {forms} of them {unserved}, the others by policy"


def offloaded_count(ranks: list[dict]) -> int:
    """Operations that services did for the ranks: collectives, and those on windows."""
    return _sum(ranks, "offloaded_count") + _sum([rank.get("windows", {}) for rank in ranks], "operations_count")


def by_collective(ranks: list[dict]) -> dict[str, Counter]:
    """Per collective, under its nonblocking name, the sums of offloaded_count and native_count."""
    sums: dict[str, Counter] = {}
    for rank in ranks:
        for name, counts in rank.get("collectives", {}).items():
            sums.setdefault(name, Counter()).update(counts)
    return sums


def _most_offloaded(ranks: list[dict]) -> list[str]:
    """ "12 ialltoall, 4 iallreduce" as the only element; none if nothing is known of it."""
    counts = Counter({name: sums["offloaded_count"] for name, sums in by_collective(ranks).items()})
    named = [f"{count} {name}" for name, count in counts.most_common(3) if count]
    if not named:
        return []
    more = sum(1 for count in counts.values() if count) > len(named)
    return [", ".join(named) + (", ..." if more else "")]


def _sum(ranks: list[dict], name: str) -> int:
    return sum(rank.get(name, 0) for rank in ranks)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
