"""What the ranks report at MPI_Finalize, read back and put into one line."""

import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from offpath.mpis import TITLES


@contextlib.contextmanager
def private_file() -> Iterator[str]:
    """A file for OFFPATH_STATS_FILE that is gone afterwards."""
    handle, name = tempfile.mkstemp(prefix="offpath-stats-", suffix=".jsonl")
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
        text += f" ({_bytes(_sum(ranks, 'offloaded_bytes'))})"
    text += f", {native} on the host"
    reasons = Counter(str(rank["reason"]) for rank in ranks if rank.get("reason"))
    if reasons:
        text += ": " + "; ".join(reason.rstrip(".") for reason, _ in reasons.most_common(3))
    elif native:
        text += " by policy"
    if failed:
        text += f"; {failed} FAILED"
    return text + "."


def _sum(ranks: list[dict], name: str) -> int:
    return sum(rank.get(name, 0) for rank in ranks)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
