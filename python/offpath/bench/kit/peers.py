# SPDX-License-Identifier: BSD-3-Clause
"""Rows of several peers that do the same: beside each other on a terminal, as bars on a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from rich.text import Text

from offpath.base import console, tables
from offpath.bench.kit.tables import ABSENT, Cell, Shown, cell
from offpath.pages import report
from offpath.places.comparison import HOST

TITLES = {
    "host": "host", "tests": "MPI_Test", "async": "async", "thread": "thread", "thread-yield": "yields",
    "offpath": "Offpath", "encrypt": "encrypt", "unprotected": "no tag",
}  # fmt: skip
FAR_TITLES = {"offpath-dpu": "Offpath, DPU", "offpath-node": "Offpath, node"}  # in a table of their own
COLOURS = {
    "host": 0, "tests": 2, "async": 3, "offpath": 1, "offpath-dpu": 4, "offpath-node": 5, "encrypt": 6,
    "unprotected": 7, "thread": 8, "thread-yield": 9,
}  # fmt: skip
CHANGED = ("tests",)  # another program
OWN_THREADS = ("async", "thread", "thread-yield")  # of the MPI
NAME_WIDTH = 18  # a terminal of 80 columns has no room for the longest name in one line

ByPeer = Mapping[str, dict]
Gain = Callable[[ByPeer], Optional[float]]


def title(peer: str) -> str:
    return (TITLES | FAR_TITLES)[peer]


def gain_in(time: str) -> Gain:
    """This time of the best of the others / of Offpath; None when one of the two is missing."""

    def gain(by_peer: ByPeer) -> float | None:
        others = [row[time] for row in by_peer.values() if row["mode"] == HOST]
        return min(others) / by_peer["offpath"][time] if "offpath" in by_peer and others else None

    return gain


total_gain = gain_in("t_total_ns")


def unchanged_gain(by_peer: ByPeer) -> float | None:
    """The same of those that leave the program as it is; None also where no thread of the MPI's own was measured."""
    if by_peer.keys().isdisjoint(OWN_THREADS):
        return None
    return total_gain({peer: row for peer, row in by_peer.items() if peer not in CHANGED})


def alike(rows: Iterable[dict], *fields: str) -> list[ByPeer]:
    """Rows by peer, of those that are alike in the fields; in the order of measurement."""
    found: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        found.setdefault(tuple(row[field] for field in fields), {})[row["peer"]] = row
    return list(found.values())


def _parts(rows: Iterable[dict], *texts: Cell) -> Iterator[tuple[tuple[str, ...], list[dict]]]:
    """Rows for which these cells say the same."""
    found: dict[tuple[str, ...], list[dict]] = {}
    for row in rows:
        found.setdefault(tuple(cell(text, row) for text in texts), []).append(row)
    yield from found.items()


@dataclass(frozen=True)
class Beside(Shown):
    """A table for each title; for each peer the same `columns`, the first of which has its name."""

    title: Cell
    heading: Cell  # rows that have the same stand below it
    columns: Sequence[tuple[str, Cell]]
    gains: Mapping[str, Gain]

    def show(self, result: dict) -> None:
        for (words,), rows in _parts(result["rows"], self.title):
            parts = [(heading, alike(below, "bytes")) for (heading,), below in _parts(rows, self.heading)]
            peers = [peer for peer in TITLES if any(row["peer"] == peer for row in rows)]
            names = [name or TITLES[peer] for peer in peers for name, _ in self.columns]
            sizes = [by_peer for _, below in parts for by_peer in below]
            gains = {name: gain for name, gain in self.gains.items() if any(map(gain, sizes))}
            table = tables.Table("", *names, *gains, together=len(self.columns), **tables.STYLE)
            for column in table.columns[1:]:
                column.no_wrap, column.justify = True, "right"
            table.columns[0].max_width, table.columns[0].overflow = NAME_WIDTH, "fold"
            for heading, below in parts:
                table.add_section()
                table.add_row(Text(heading, "bold"))
                for by_peer in below:
                    table.add_row(*self._cells(peers, by_peer, gains.values()))
            console.out.print(f"[italic]{words}[/]", table, sep="\n")

    def _cells(self, peers: Sequence[str], by_peer: ByPeer, gains: Iterable[Gain]) -> list[str]:
        size = cell("  {bytes:size}", next(iter(by_peer.values())))
        cells = [cell(text, by_peer.get(peer, {})) for peer in peers for _, text in self.columns]
        return [size, *cells, *(f"{found:.2f} x" if found else ABSENT for found in (gain(by_peer) for gain in gains))]


@dataclass(frozen=True)
class Chart(Shown):
    """A card of bars for each title, of the value that each row has; in brackets Offpath's gain."""

    title: Cell
    value: Callable[[dict], float]
    text: Cell
    gain: Gain
    note: str
    size: Cell = "{bytes:size}"
    limit: float | None = None
    spread: Callable[[dict], tuple[float, float]] | None = None

    def cards(self, result: dict) -> Iterator[str]:
        for (words,), rows in _parts(result["rows"], self.title):
            used = {COLOURS[row["peer"]]: row["peer"] for row in rows}
            series = [title(used[index]) if index in used else "" for index in range(len(COLOURS))]
            bars = [bar for by_peer in alike(rows, "bytes") for bar in self._bars(by_peer)]
            yield report.card(words, report.bars(words, series, bars, self.limit), note=self.note)

    def _bars(self, by_peer: ByPeer) -> Iterator[report.Bar]:
        gain = self.gain(by_peer)
        for index, (peer, row) in enumerate(by_peer.items()):
            text = cell(self.text, row) + (f"  ({gain:.2f} x)" if gain and peer == "offpath" else "")
            label = f"{cell(self.size, row)} {title(peer)}"
            spread = self.spread(row) if self.spread else None
            yield report.Bar(label, [(COLOURS[peer], self.value(row))], text, spread, starts_group=index == 0)
