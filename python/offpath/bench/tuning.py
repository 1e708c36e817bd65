# SPDX-License-Identifier: BSD-3-Clause
"""From measured rows to rows of the policy. Pure: what was measured goes in, a decision comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offpath.base.oldest import zip_equal
from offpath.launch.policy_table import MEASURED, Table

# What offloading, or another algorithm than the default, must be better by before it is chosen: more than noise.
GUARD = 1.03
SEND = "send"  # messages, decided like a collective
PATTERN = "posted"  # of them: natively the better one, so what gains there gains elsewhere
HERE = "offpath tune"
SHIPPED = "not measured: as it ships with Offpath, where the rows before it would hold, too"
PREFIX = "dpu"  # a peer's name is its policy: "dpu", "dpu=ring"


@dataclass(frozen=True)
class Decision:
    """What becomes of one collective on at least so many nodes."""

    collective: str
    nodes: int
    sizes: tuple[int, ...]  # measured, ascending
    best: tuple[str, ...]  # for each size the path that wins, like dpu or dpu=ring
    gains: tuple[float, ...]  # t_total of the host / of that path, with the MPI that gains least; 0: no result
    first: int  # index of the size from which on it is offloaded; len(sizes): never

    @property
    def offloads(self) -> bool:
        return self.first < len(self.sizes)

    def rows(self) -> list[str]:
        """Rows of the policy: everything on the host, then what is offloaded from which size on."""
        nodes = min(self.nodes, 2) if self.collective == SEND else self.nodes  # a message has two ranks
        place = f":nodes={nodes}" if nodes > 1 else ""
        rows = [f"{self.collective}{place}:host"]
        start = self.first
        while start < len(self.sizes):
            end = start
            while end < len(self.sizes) and self.best[end] == self.best[start]:
                end += 1
            to = str(self.sizes[end]) if end < len(self.sizes) else "inf"
            rows.append(f"{self.collective}:{self.sizes[start]}-{to}{place}:{self.best[start]}")
            start = end
        return rows


def decide(
    rows: Sequence[dict], collective: str, nodes: int, mpis: Sequence[str], measured: Mapping[str, str] | None = None
) -> Decision:
    """The decision that holds for all `mpis`, as the policy does not tell them apart. `measured`: fields of the
    rows that were measured for it; without it they name the collective.

    Offloading begins at the smallest size from which on it wins at every larger one: a single lucky size is not
    believed. A result that is missing or wrong does not win.
    """
    fields = measured or {"collective": collective}
    mine = [row for row in rows if all(row.get(name) == value for name, value in fields.items())]
    sizes = tuple(sorted({row["bytes"] for row in mine}))
    paths = [PREFIX, *dict.fromkeys(row["peer"] for row in mine if row["peer"].startswith(PREFIX + "="))]
    speedups = {(row["mpi"], row["bytes"], row["peer"]): row["speedup"] for row in mine if row["verified"]}

    def gain(size: int, path: str) -> float:
        return min(speedups.get((mpi, size, path), 0.0) for mpi in mpis)

    best = []
    for size in sizes:
        fastest = max(paths, key=lambda path: gain(size, path))
        best.append(fastest if gain(size, fastest) >= GUARD * gain(size, PREFIX) else PREFIX)
    gains = tuple(gain(size, path) for size, path in zip_equal(sizes, best))
    first = len(sizes)
    while first > 0 and gains[first - 1] >= GUARD:
        first -= 1
    return Decision(collective, nodes, sizes, tuple(best), gains, first)


def sources(decisions: Sequence[Decision], table: Table) -> list[tuple[str, str]]:
    """(source, text) of all decisions as rows, fewer nodes first, as later rows win.

    Rows without nodes= hold for any number of nodes; what was found inside one node must not, so the rows that come
    with Offpath are said again behind them.
    """
    found = []
    for decision in sorted(decisions, key=lambda each: each.nodes):
        found.append((HERE, ",".join(decision.rows())))
        if decision.nodes == 1:
            shipped = [
                row["text"]
                for row in table.rows
                if row["source"] == MEASURED and row["collective"] == decision.collective and row["nodes"] > 1
            ]
            found.append((SHIPPED, ",".join([f"{decision.collective}:nodes=2:host", *shipped])))
    return found
