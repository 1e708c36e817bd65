# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath bench collectives` and `pt2pt` show: a table for each MPI, and a page with a chart for each operation.

`noun`: the rows' field that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box

from offpath.base import console
from offpath.base.sizes import ms_text, size_text
from offpath.base.tables import Table
from offpath.bench import results
from offpath.bench.measuring import TIMES
from offpath.launch.mpis import TITLES
from offpath.pages import report
from offpath.places.comparison import HOST

PEER_TITLES = {"host": "host", "tests": "MPI_Test", "async": "async", "offpath": "Offpath"}
FAR_TITLES = {"offpath-dpu": "Offpath, DPU", "offpath-node": "Offpath, node"}  # in a table of their own
COLOURS = {"host": 0, "tests": 2, "async": 3, "offpath": 1, "offpath-dpu": 4, "offpath-node": 5}
COLLECTIVE = "collective"
NUMBERS = ("size", "peer", "t_pure", "t_compute", "t_total", "min-max", "efficiency", "gain over host",
           "host CPU", "service CPU")  # fmt: skip
ABSENT = "-"
NAME_WIDTH = 12  # a terminal of 80 columns has no room for the longest name in one line


def gain(by_peer: dict[str, dict]) -> float | None:
    """t_total of the best of the others / t_total of Offpath; None when one of the two is missing."""
    others = [row["t_total_ns"] for row in by_peer.values() if row["mode"] == HOST]
    if "offpath" not in by_peer or not others:
        return None
    return min(others) / by_peer["offpath"]["t_total_ns"]


def groups(result: dict, kind: str, noun: str = COLLECTIVE) -> Iterator[tuple[str, int, dict[str, dict]]]:
    """(operation, size, row by peer) of one MPI, in the order of measurement."""
    found: dict[tuple[str, int], dict[str, dict]] = {}
    for row in result["rows"]:
        if row["mpi"] == kind:
            found.setdefault((row[noun], row["bytes"]), {})[row["peer"]] = row
    for (name, size), by_peer in found.items():
        yield name, size, by_peer


def show(result: dict, noun: str = COLLECTIVE) -> None:
    for kind in result["meta"]["mpi_versions"]:
        rows = list(groups(result, kind, noun))
        peers = [peer for peer in PEER_TITLES if any(peer in by_peer for _, _, by_peer in rows)]
        if not rows:
            continue
        columns = [column for peer in peers for column in (PEER_TITLES[peer], "eff.")]
        title = f"{TITLES[kind]}: t_total in ms and efficiency"
        style = {"title_justify": "left", "box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
        table = Table("", *columns, "gain", together=2, title=title, **style)
        for column in table.columns:
            column.no_wrap = column is not table.columns[0]
            column.justify = "right" if column.no_wrap else "left"
        table.columns[0].max_width, table.columns[0].overflow = NAME_WIDTH, "fold"
        last = None
        for name, size, by_peer in rows:
            if name != last:
                table.add_section()
                table.add_row(f"[bold]{name}[/]")
            last = name
            table.add_row(*_cells(size, peers, by_peer))
        console.out.print(table)
        _show_placements(kind, rows)
    results.show_failures(result["meta"], noun)


def _show_placements(kind: str, rows: Sequence[tuple[str, int, dict[str, dict]]]) -> None:
    """Where the service of one of them is on another machine."""
    if not any(peer in by_peer for peer in FAR_TITLES for _, _, by_peer in rows):
        return
    title = f"{TITLES[kind]}: ms, and ns of processor time per byte"
    table = Table(
        "", "placement", "t_pure", "t_total", "eff.", "host", "service", title=title,
        title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for column in table.columns[2:]:
        column.justify = "right"
    for name, size, by_peer in rows:
        for row in by_peer.values():
            if row["mode"] == HOST:
                continue
            costs = (f"{row[f'{whose}_cpu_ns_per_byte']:.2f}" for whose in ("host", "service"))
            times = (ms_text(row[f"{time}_ns"]) for time in ("t_pure", "t_total"))
            table.add_row(f"{name} {size_text(size)}", row["placement"], *times, f"{row['efficiency']:.2f}", *costs)
    console.out.print(table)


def _cells(size: int, peers: Sequence[str], by_peer: dict[str, dict]) -> list[str]:
    cells = [f"  {size_text(size)}"]
    for peer in peers:
        row = by_peer.get(peer)
        cells += [ms_text(row["t_total_ns"]), f"{row['efficiency']:.2f}"] if row else [ABSENT, ABSENT]
    best = gain(by_peer)
    return [*cells, f"{best:.2f} x" if best else ABSENT]


def page(result: dict, noun: str = COLLECTIVE, what: str = "Nonblocking collectives") -> str:
    meta, sections = result["meta"], []
    for kind in meta["mpi_versions"]:
        rows = list(groups(result, kind, noun))
        for name in dict.fromkeys(each for each, _, _ in rows):
            note = "Efficiency: max(t_pure, t_compute) / t_total; in brackets t_total of the best peer / of Offpath."
            chart = _chart(kind, name, [(size, by_peer) for each, size, by_peer in rows if each == name])
            sections.append(report.card(f"{name} with {TITLES[kind]} {meta['mpi_versions'][kind]}", chart, note=note))
        numbers = [[row[noun], *_numbers(row)] for _, _, by_peer in rows for row in by_peer.values()]
        heading = f"All numbers with {TITLES[kind]}: median times in ms"
        sections.append(report.card(heading, report.table((noun, *NUMBERS), numbers)))
    sections.append(results.conditions_card(meta, noun))
    lead = (
        "The same work and the same cores for all, launched in turns; median of all launches. host: the MPI alone; "
        "MPI_Test: the same, tested all through the computation; async: MPICH with its progress thread."
    )
    return report.page(f"{what} behind computation", lead, sections)


def _title(peer: str) -> str:
    return (PEER_TITLES | FAR_TITLES)[peer]


def _chart(kind: str, name: str, rows: Sequence[tuple[int, dict[str, dict]]]) -> str:
    series = [""] * len(COLOURS)
    bars = []
    for size, by_peer in rows:
        best = gain(by_peer)
        for index, (peer, row) in enumerate(by_peer.items()):
            title = _title(peer)
            series[COLOURS[peer]] = title
            text = f"{row['efficiency']:.2f}" + (f"  ({best:.2f} x)" if best and peer == "offpath" else "")
            label = f"{size_text(size)} {title}"
            bars.append(report.Bar(label, [(COLOURS[peer], row["efficiency"])], text, starts_group=index == 0))
    return report.bars(f"Efficiency of {name} with {TITLES[kind]}", series, bars, limit=1.0)


def _numbers(row: dict) -> list[str]:
    return [
        size_text(row["bytes"]),
        _title(row["peer"]),
        *(ms_text(row[f"{time}_ns"]) for time in TIMES),
        f"{ms_text(row['t_total_min_ns'])}-{ms_text(row['t_total_max_ns'])}",
        f"{row['efficiency']:.3f}",
        f"{row['speedup']:.2f} x",
        ms_text(row["host_cpu_ns"]),
        ms_text(row["service_cpu_ns"]),
    ]
