# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath plan` predicts, as pages."""

from __future__ import annotations

from offpath.base.sizes import size_text
from offpath.pages import report

HOST, DPU, LIMIT = 0, 1, 2  # of the page's colours
SITES = 20


def replay(found: dict, name: str) -> str:
    """`found`: as --json prints it."""
    there = () if found["host_ns"] == found["recorded_ns"] else (("there, not offloaded", HOST, "host_ns"),)
    times = (("as recorded", HOST, "recorded_ns"), *there, ("offloaded", DPU, "offloaded_ns"),
             ("limit", LIMIT, "limit_ns"))  # fmt: skip
    error = found["error"] * found["offloaded_ns"] / 1e9
    bars = []
    for title, colour, field in times:
        seconds = found[field] / 1e9
        spread = (max(0.0, seconds - error), seconds + error) if field == "offloaded_ns" else None
        bars.append(report.Bar(title, [(colour, seconds)], f"{seconds:.4g} s", spread))
    sites = []
    for row in found["sites"][:SITES]:
        for colour, field in ((HOST, "host_ns"), (DPU, "offloaded_ns")):
            first = field == "host_ns"
            label, seconds = row["call"] if first else row["site"], row[field] / 1e9
            sites.append(report.Bar(label, [(colour, seconds)], f"{seconds:.4g} s", starts_group=first))
    series = ["not offloaded", "offloaded", "limit: a DPU that costs nothing"]
    sections = [
        report.figures(
            [(f"{found['gain']:+.1%}", found["verdict"]), (f"± {found['error']:.0%}", "error of the model")]
        ),
        report.card("The run", report.bars("times of the run", series, bars)),
    ]
    if sites:
        note = "Times are summed over the ranks, the longest first."
        sections.append(report.card("Call sites", report.bars("times of call sites", series[:2], sites), note=note))
    return report.page(f"Would offloading help? {name}", "Predicted from a recorded run.", sections)


def scale(found: dict) -> str:
    """`found`: as --json prints it."""
    sections = []
    for name in dict.fromkeys(row["operation"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["operation"] == name]
        what = f"{found['points']}^3 points" if name == "fft" else size_text(found["bytes"])
        curves = {title: [row[f"{title}_ns"] / 1e6 for row in rows] for title in ("host", "dpu")}
        chart = report.lines(f"{name} over nodes", [row["nodes"] for row in rows], curves, "nodes", "ms")
        sections.append(report.card(f"{name}, {what}", chart))
    return report.page("Time against number of nodes", "On the host, and by a DPU.", sections)
