# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath bench onesided` shows: a table for each library, and a page with a chart for each operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box

from offpath.base import console
from offpath.base.sizes import size_text
from offpath.base.tables import Table
from offpath.bench import results
from offpath.bench.measuring import TIMES
from offpath.bench.overlap_report import ABSENT, COLOURS, PEER_TITLES
from offpath.launch.mpis import TITLES
from offpath.pages import report

PEERS = ("host", "offpath")
INTERFACES = {"mpi": "MPI RMA", "shmem": "OpenSHMEM"}
NUMBERS = ("operation", "size", "target", "peer", "t_pure", "t_compute", "t_total", "t_pure min-max", "efficiency",
           "messages/s", "piece", "host CPU", "service CPU")  # fmt: skip


def gain(by_peer: dict[str, dict], time: str) -> float | None:
    """That time of the library alone / of Offpath; None when one of the two is missing."""
    if not all(peer in by_peer for peer in PEERS):
        return None
    return by_peer["host"][f"{time}_ns"] / by_peer["offpath"][f"{time}_ns"]


def libraries(result: dict) -> dict[str, list[dict]]:
    """The rows of each library, by its title."""
    found: dict[str, list[dict]] = {}
    for row in result["rows"]:
        found.setdefault(f"{TITLES[row['mpi']]}, {INTERFACES[row['interface']]}", []).append(row)
    return found


def groups(rows: Sequence[dict]) -> Iterator[tuple[tuple[str, str], dict[int, dict[str, dict]]]]:
    """(operation, target) and its rows by size and peer, in the order of measurement."""
    found: dict[tuple[str, str], dict[int, dict[str, dict]]] = {}
    for row in rows:
        by_size = found.setdefault((row["operation"], row["target"]), {})
        by_size.setdefault(row["bytes"], {})[row["peer"]] = row
    yield from found.items()


def us_text(ns: float) -> str:
    return f"{ns / 1e3:.{1 if ns < 1e6 else 0}f}"


def rate_text(row: dict) -> str:
    return f"{row['messages'] / row['t_pure_ns'] * 1e9:.0f}"


def show(result: dict) -> None:
    for library, rows in libraries(result).items():
        columns = [column for peer in PEERS for column in (PEER_TITLES[peer], "total", "eff.")]
        title = f"{library}: t_pure and t_total in us, efficiency, gain in t_pure"
        style = {"title_justify": "left", "box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
        table = Table("", *columns, "gain", together=3, title=title, **style)
        for column in table.columns:
            column.no_wrap, column.justify = True, "right"
        table.columns[0].justify = "left"
        for (operation, target), by_size in groups(rows):
            table.add_section()
            table.add_row(f"[bold]{operation}, {target}[/]")
            for size, by_peer in by_size.items():
                table.add_row(*_cells(size, by_peer))
        console.out.print(table)
    results.show_failures(result["meta"], "operation")


def _cells(size: int, by_peer: dict[str, dict]) -> list[str]:
    cells = [f"  {size_text(size)}"]
    for peer in PEERS:
        row = by_peer.get(peer)
        times = [us_text(row["t_pure_ns"]), us_text(row["t_total_ns"]), f"{row['efficiency']:.2f}"] if row else []
        cells += times or 3 * [ABSENT]
    best = gain(by_peer, "t_pure")
    return [*cells, f"{best:.2f} x" if best else ABSENT]


def page(result: dict) -> str:
    meta, sections = result["meta"], []
    for library, rows in libraries(result).items():
        for (operation, target), by_size in groups(rows):
            note = "Bars: t_pure in us with its range; in brackets t_pure of the library alone / of Offpath."
            chart = _chart(f"t_pure of {operation}, {target} target, with {library}", by_size)
            sections.append(report.card(f"{operation}, {target} target: {library}", chart, note=note))
        numbers = report.table(NUMBERS, [_numbers(row) for row in rows])
        sections.append(report.card(f"All numbers with {library}: median times in us", numbers))
    sections.append(results.conditions_card(meta, "operation"))
    lead = (
        "The same work and the same cores for both, launched in turns; median of all launches. An idle target waits in "
        "a barrier, a computing one calls its library between pieces of 10 ms only. piece: how long such a piece took."
    )
    return report.page("One-sided operations", lead, sections)


def _chart(description: str, by_size: dict[int, dict[str, dict]]) -> str:
    series = [""] * len(COLOURS)
    bars = []
    for size, by_peer in by_size.items():
        best = gain(by_peer, "t_pure")
        for index, (peer, row) in enumerate(by_peer.items()):
            series[COLOURS[peer]] = PEER_TITLES[peer]
            text = us_text(row["t_pure_ns"]) + (f"  ({best:.2f} x)" if best and peer == "offpath" else "")
            low_high = row["t_pure_min_ns"] / 1e3, row["t_pure_max_ns"] / 1e3
            label = f"{size_text(size)} {PEER_TITLES[peer]}"
            bars.append(report.Bar(label, [(COLOURS[peer], row["t_pure_ns"] / 1e3)], text, low_high, index == 0))
    return report.bars(description, series, bars)


def _numbers(row: dict) -> list[str]:
    return [
        row["operation"],
        size_text(row["bytes"]),
        row["target"],
        PEER_TITLES[row["peer"]],
        *(us_text(row[f"{time}_ns"]) for time in TIMES),
        f"{us_text(row['t_pure_min_ns'])}-{us_text(row['t_pure_max_ns'])}",
        f"{row['efficiency']:.3f}",
        rate_text(row),
        us_text(row["target_piece_ns"]),
        us_text(row["host_cpu_ns"]),
        us_text(row["service_cpu_ns"]),
    ]
