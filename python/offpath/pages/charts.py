# SPDX-License-Identifier: BSD-3-Clause
"""Charts for pages, drawn by matplotlib as SVG: text stays text, colours are the page's and follow light and dark.

An SVG of matplotlib is some kilobytes and needs nothing when it is looked at. Libraries whose charts move are megabytes
of JavaScript in each page.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from offpath.base.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, BAR, GAP, EDGE = 840, 22, 8, 6
LETTER = 7.2  # width of one, about
DECADE = 10  # from this ratio on values stand on a logarithmic axis
SERIES = "abcdefghij"  # the page's colours for series, by index
# What matplotlib draws with, and the variable of the page that takes its place.
INKS = {f"#fe00{index:02x}": name for index, name in enumerate((*SERIES, "ink", "soft", "line"))}
_BY_NAME = {name: ink for ink, name in INKS.items()}


@dataclass
class Bar:
    """One bar: parts lie one after the other, each (index of its series, length)."""

    label: str
    parts: Sequence[tuple[int, float]]
    text: str
    low_high: tuple[float, float] | None = None
    starts_group: bool = False


def ink(name: str) -> str:
    return _BY_NAME[name]


def bars(description: str, rows: Sequence[Bar], limit: float | None = None) -> str:
    """Horizontal bars from 0 to `limit` (default: the longest), whiskers where there is a low and a high."""
    places, y = [], 0.0
    for row in rows:
        y += 2 * GAP if row.starts_group and places else 0
        places.append(y + BAR / 2)
        y += BAR + GAP
    ends = [sum(length for _, length in row.parts) for row in rows]
    ends = [max(end, row.low_high[1]) if row.low_high else end for end, row in zip(ends, rows)]
    longest = max([limit or 0, *ends]) or 1
    left, right = (
        min(most, max(least, LETTER * max((len(text) for text in texts), default=0) + 24))
        for least, most, texts in ((170, 380, [row.label for row in rows]), (120, 300, [row.text for row in rows]))
    )
    with _axes(description, y + 2 * EDGE, left=left, right=right) as (axes, finish):
        for row, place, end in zip(rows, places, ends):
            done = 0.0
            for index, length in row.parts:
                axes.barh(place, max(0.0, length), BAR, left=done, color=ink(SERIES[index]))
                done += max(0.0, length)
            if row.low_high:
                middle, low, high = done, *row.low_high
                error = [[max(0.0, middle - low)], [max(0.0, high - middle)]]
                axes.errorbar(middle, place, xerr=error, ecolor=ink("ink"), elinewidth=1, capsize=4, capthick=1)
            axes.annotate(
                row.text, (end, place), (8, 0), textcoords="offset points", va="center", color=ink("ink"),
                annotation_clip=False,
            )  # fmt: skip
            if row.starts_group and place is not places[0]:
                axes.axhline(place - BAR / 2 - 1.5 * GAP, -0.3, 1.2, color=ink("line"), linewidth=1, clip_on=False)
        if limit is not None:
            axes.axvline(limit, color=ink("line"), linestyle=(0, (4, 4)), linewidth=1)
        axes.set_xlim(0, longest)
        axes.set_ylim(y - GAP + EDGE, -EDGE)
        axes.set_yticks(places, [row.label for row in rows])
        axes.set_xticks([])
        axes.tick_params(length=0, pad=10, colors=ink("ink"))
        axes.spines[:].set_visible(False)
        return finish()


def lines(
    description: str, x: Sequence[float], curves: Mapping[str, Sequence[float]], x_label: str, y_label: str
) -> str:
    """Curves over x, which is logarithmic, as y is where it spans a decade; each curve has the colour of its place."""
    values = [value for curve in curves.values() for value in curve]
    with _axes(description, 420, left=70, right=20, top=15, bottom=50) as (axes, finish):
        for index, curve in enumerate(curves.values()):
            dashes = (0, (6, 4)) if index >= 4 else "-"  # one that lies on another shows it
            axes.plot(x, curve, color=ink(SERIES[index % len(SERIES)]), linewidth=2, linestyle=dashes)
        axes.set_xscale("log", base=2)
        if min(values) > 0 and max(values) >= DECADE * min(values):
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(x_label, color=ink("soft"))
        axes.set_ylabel(y_label, color=ink("soft"))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(color=ink("line"), linewidth=1)
        axes.set_axisbelow(True)
        axes.tick_params(which="both", length=0, colors=ink("ink"))
        axes.minorticks_off()
        axes.spines[:].set_visible(False)
        return finish()


@contextmanager
def _axes(
    description: str, height: float, *, left: float, right: float, top: float = 0, bottom: float = 0
) -> Iterator[tuple[Axes, object]]:
    """Axes in a picture of so many pixels, and what makes text of it."""
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError(
            "matplotlib is not installed (it draws the charts). Install it (Debian: python3-matplotlib), or leave "
            "--html out."
        ) from None
    settings = {"svg.fonttype": "none", "svg.hashsalt": description, "font.size": 13, "path.simplify": False}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, frameon=False)
        place = (left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, (height - top - bottom) / height)
        axes = figure.add_axes(place, frameon=True)
        axes.patch.set_visible(False)

        def finish() -> str:
            text = io.StringIO()
            FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None, "Creator": None})
            return _of_page(text.getvalue(), description)

        yield axes, finish


def _of_page(text: str, description: str) -> str:
    """As an element of a page: its colours and its font, no names that another chart may have, no size of its own."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<g) id="[^"]*"', r"\1", text)
    view = re.search(r'viewBox="[^"]*"', text)[0]
    opening = f'<svg {view} role="img" aria-label="{escape(description)}">'
    text = re.sub(r"<svg.*?>", opening, text, count=1, flags=re.DOTALL)
    text = re.sub(r"font: [\d.]+px [^;\"]*", "font-size: 13px", text)
    for colour, name in INKS.items():
        text = text.replace(colour, f"var(--{name})")
    return re.sub(r"\n\s*", "\n", text).strip()
