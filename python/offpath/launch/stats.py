# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks report at MPI_Finalize, read back. closing_line.py puts it into one line."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PETSC = "petsc"  # whose line it is, where it is not a rank of an MPI


@contextlib.contextmanager
def private_file(folder: Path) -> Iterator[str]:
    """An empty file for OFFPATH_STATS_FILE that is gone afterwards; with `folder` if we are killed."""
    handle, name = tempfile.mkstemp(prefix="offpath-stats-", suffix=".jsonl", dir=folder)
    os.close(handle)
    try:
        yield name
    finally:
        Path(name).unlink(missing_ok=True)


def read(name: str) -> list[dict]:
    """The ranks' lines; a line cut short by a crash is left out."""
    try:
        content = Path(name).read_bytes()
    except FileNotFoundError:
        return []
    ranks = []
    for line in content.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                ranks.append(entry)
    return ranks


def append(name: str, target: str) -> None:
    """The lines of file `name`, at the end of `target`, in one piece: others may write there, too."""
    lines = Path(name).read_bytes()
    with open(target, "ab", buffering=0) as file:
        file.write(lines)


def offloaded_count(ranks: list[dict]) -> int:
    """Operations that services did for the ranks: collectives, those on windows, messages, and transfers of files."""
    windows, messages = ([rank.get(name, {}) for rank in ranks] for name in ("windows", "messages"))
    files = [rank.get("files", {}).get(way, {}) for rank in ranks for way in ("write", "read")]
    return total([*ranks, *messages, *files], "offloaded_count") + total(windows, "operations_count")


def by_collective(ranks: list[dict]) -> dict[str, Counter]:
    """Per collective, under its nonblocking name, the sums of offloaded_count and native_count."""
    sums: dict[str, Counter] = {}
    for rank in ranks:
        for name, counts in rank.get("collectives", {}).items():
            sums.setdefault(name, Counter()).update(counts)
    return sums


def total(ranks: list[dict], name: str) -> int:
    """The sum of a counter over all lines."""
    return sum(rank.get(name, 0) for rank in ranks)
