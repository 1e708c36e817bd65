#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes from measured JSON what the documents show of it (make figures): pictures, and the tables of README and of
the performance pages.

docs/figures/NAME.json is what a command wrote with --json; its picture NAME.svg has a function in FIGURES. What tables
are made of is in docs/figures/results: see measured.py.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "figures"
sys.path.insert(0, str(ROOT / "python"))

import gains  # noqa: E402
import losses  # noqa: E402
import measured  # noqa: E402
import reached  # noqa: E402
from offpath.base.sizes import size_text  # noqa: E402
from offpath.bench.kit import peers  # noqa: E402
from offpath.launch.mpis import TITLES  # noqa: E402
from offpath.pages import charts, report  # noqa: E402

HEAD = 54  # pixels above the chart
SPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def collectives(result: dict) -> tuple[str, str]:
    """Time of computation and communication together, by peer: shorter is better."""
    [kind] = result["meta"]["mpi_versions"]
    bars = []
    for by_peer in peers.alike(result["rows"], "collective", "bytes"):
        for index, (peer, row) in enumerate(by_peer.items()):
            ms, low, high = (row[f"t_total{part}_ns"] / 1e6 for part in ("", "_min", "_max"))
            label = f"{row['collective']} {size_text(row['bytes'])}" if index == 0 else ""
            text = f"{ms:.0f} ms  {'the MPI alone' if peer == 'host' else peers.TITLES[peer]}"
            bars.append(charts.Bar(label, [(peers.COLOURS[peer], ms)], text, (low, high), index == 0))
    meta = result["meta"]
    title = (
        f"Computation and communication together with {TITLES[kind]} {meta['mpi_versions'][kind]}: shorter is better"
    )
    about = (
        f"{meta['nodes']} emulated nodes, {meta['rate']}; median, shortest and longest of {meta['runs']} launches "
        f"x {meta['repeats']} repeats; the service has no core of its own; {meta['date'][:10]}"
    )
    return charts.bars(title, bars), f"{title}\n{about}"


FIGURES = {"collectives": collectives}
TABLES: dict[str, Callable[[], str]] = {
    "reached": reached.table,
    "losses": losses.reasons,
    "gains": gains.programs,
    "other gains": gains.other_work,
}
PAGES = [*measured.PAGES, ROOT / "docs" / "when-not.md", ROOT / "README.md"]
MARK = re.compile(r"^<!-- (?!end)(.*) -->$", re.MULTILINE)


def written(page: Path) -> str:
    """With its tables made anew."""
    text, results = page.read_text(), dict(measured.tables())
    for mark in MARK.findall(text):
        text = measured.with_block(text, mark, results[mark] if mark in results else TABLES[mark]())
    return text


def picture(svg: str, text: str) -> str:
    """A file of its own: with the pages' colours for light and dark, and words above the chart."""
    width, height = (float(number) for number in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())
    title, about = text.split("\n")
    colours = re.search(r":root\{.*?\}\n@media.*?\}\}", report.STYLE, re.DOTALL)[0].replace(":root", "svg")
    style = f'{colours}\ntext{{font-family:system-ui,"Segoe UI",sans-serif;fill:var(--ink)}}'
    inner = svg.replace("<svg ", f'<svg y="{HEAD}" height="{height:g}" width="{width:g}" ', 1)
    return (
        f'<svg {SPACES} viewBox="0 0 {width:g} {height + HEAD:g}" role="img" '
        f'aria-label="{escape(title)}"><style>{style}</style><rect width="100%" height="100%" fill="var(--card)"/>\n'
        f'<text x="20" y="24" style="font-size:15px;font-weight:600">{escape(title)}</text>\n'
        f'<text x="20" y="43" style="font-size:12px;fill:var(--soft)">{escape(about)}</text>\n{inner}\n</svg>\n'
    )


def drawn(name: str) -> str:
    return picture(*FIGURES[name](json.loads((FOLDER / f"{name}.json").read_text())))


def main() -> None:
    for name in FIGURES:
        (FOLDER / f"{name}.svg").write_text(drawn(name))
        print(f"figures: docs/figures/{name}.svg")
    for page in PAGES:
        page.write_text(written(page))
        print(f"figures: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
