# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks report at MPI_Finalize, read back. closing_line.py puts it into one line."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from offpath.base.sizes import seconds

PETSC = "petsc"  # whose line it is, where it is not a rank of an MPI


@contextlib.contextmanager
def private_file(folder: Path) -> Iterator[str]:
    """An empty file for OFFPATH_STATS_FILE that is gone afterwards; with `folder` if we are killed."""
    handle, name = tempfile.mkstemp(prefix="offpath-stats-", suffix=".jsonl", dir=folder)
    os.fchmod(handle, 0o600)  # whatever the umask: ranks write there
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
        with contextlib.suppress(ValueError):
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


def unused(ranks: list[dict]) -> str:
    """What to say where nothing was offloaded: why, as the ranks have said it."""
    reasons = "; ".join(sorted({str(rank["reason"]) for rank in ranks if rank.get("reason")}))
    return f"nothing was offloaded ({reasons or 'no rank said why'})"


def by_collective(ranks: list[dict]) -> dict[str, Counter]:
    """Per collective, under its nonblocking name, the sums of offloaded_count and native_count."""
    sums: dict[str, Counter] = {}
    for rank in ranks:
        for name, counts in rank.get("collectives", {}).items():
            sums.setdefault(name, Counter()).update(counts)
    return sums


@dataclass(frozen=True)
class Cost:
    """What a run took: processor time, with that of waits that do not sleep, and energy where it is known."""

    ranks_ns: int = 0
    services_ns: int = 0  # with executors and agents
    energy_uj: int = 0
    energy_nodes: int = 0  # that said it, of
    nodes: int = 0

    @property
    def text(self) -> str:
        """Nothing where nothing is known."""
        if not self.ranks_ns:
            return ""
        text = f"processor time: {seconds(self.ranks_ns)} of the ranks, {seconds(self.services_ns)} of their services"
        if not self.energy_nodes:
            return text
        of = "" if self.energy_nodes == self.nodes else f" on {self.energy_nodes} of {self.nodes} nodes"
        return f"{text}; energy: {self.energy_uj / 1e6:.4g} J{of}"

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, found: object) -> Cost:
        """What it has of another's output; nothing of anything else."""
        known = found if isinstance(found, dict) else {}
        return cls(**{name: value for name in asdict(cls()) if type(value := known.get(name)) is int and value >= 0})


def cost(lines: list[dict]) -> Cost:
    """Of all lines of one job. A process may have a line of its MPI and one of PETSc. All ranks of a node have its
    service's time; what is charged in shares (src/service/charges.hpp) is a sum."""
    with_mpi = {(line.get("node"), line.get("rank")) for line in lines if line.get("mpi") != PETSC}
    ranks_ns, services = 0, {}
    for line in lines:
        if line.get("mpi") != PETSC or (line.get("node"), line.get("rank")) not in with_mpi:
            ranks_ns += line.get("cpu_ns", 0)
        service = line.get("node"), line.get("service_pid")
        services[service] = max(services.get(service, 0), line.get("service_cpu_ns", 0))
    known = {line.get("node") for line in lines if line.get("energy_uj")}
    services_ns = sum(services.values()) + total(lines, "elsewhere_cpu_ns")
    nodes = len({line.get("node") for line in lines})
    return Cost(ranks_ns, services_ns, total(lines, "energy_uj"), len(known), nodes)


def total(ranks: list[dict], name: str) -> int:
    """The sum of a counter over all lines."""
    return sum(rank.get(name, 0) for rank in ranks)
