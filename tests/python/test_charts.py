# SPDX-License-Identifier: BSD-3-Clause
"""Charts of pages and of the README: drawn from numbers, in the page's colours, nothing loaded, up to date."""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import ROOT
from offpath.pages import charts, report

sys.path.insert(0, str(ROOT / "tools" / "docs"))
import figures  # noqa: E402

ROWS = [
    report.Bar("first <one>", [(0, 1.0), (1, 2.0)], "3 & more", starts_group=True),
    report.Bar("second", [(2, 0.0)], "0", (0.0, 5.0)),
    report.Bar("third", [(1, 4.0)], "4", (3.0, 4.5), starts_group=True),
]


def widths(svg):
    """Of the filled bars, in pixels."""
    found = []
    for points in re.findall(r'<path d="([^"]*)"[^>]*style="fill: var\(--[a-f]\)', svg):
        x = [float(value) for value in re.findall(r"[ML] ([\d.]+)", points.replace("\n", " "))]
        found.append(max(x) - min(x))
    return found


def test_bars_are_as_long_as_the_numbers():
    svg = charts.bars("times", ROWS, limit=10.0)
    ElementTree.fromstring(f'<svg xmlns:xlink="x">{svg}</svg>')
    full = charts.WIDTH - 170 - 120
    assert widths(svg) == pytest.approx([full * value / 10 for value in (1, 2, 0, 4)], abs=0.5)
    assert "first &lt;one&gt;" in svg and "3 &amp; more" in svg
    assert "#fe00" not in svg and "var(--ink)" in svg and 'aria-label="times"' in svg


def test_the_longest_sets_the_scale_where_nothing_else_does():
    assert max(widths(charts.bars("times", ROWS))) == pytest.approx((charts.WIDTH - 290) * 4 / 5, abs=0.5)
    assert widths(charts.bars("nothing", [report.Bar("none", [(0, 0.0)], "0")])) == [0]


def test_lines_have_a_curve_each():
    svg = charts.lines("times", [1, 2, 4], {"one": [1, 2, 3], "two": [3e-3, 2, 100]}, "nodes", "seconds")
    ElementTree.fromstring(f'<svg xmlns:xlink="x">{svg}</svg>')
    assert all(f"stroke: var(--{name})" in svg for name in "ab") and "stroke: var(--c)" not in svg
    assert ">nodes</text>" in svg and ">seconds</text>" in svg


def test_values_within_a_decade_have_an_axis_with_numbers():
    svg = charts.lines("times", [2, 4], {"one": [60.0, 72.0]}, "nodes", "ms")
    assert ">60</text>" in svg and ">0</text>" in svg


def test_long_words_have_room():
    rows = [report.Bar("a function with a long name", [(0, 1.0)], "1 s at a place with a long name")]
    [width] = widths(charts.bars("times", rows))
    assert width < charts.WIDTH - 7 * len(rows[0].label) - 7 * len(rows[0].text)


def test_the_same_numbers_give_the_same_picture():
    assert charts.bars("times", ROWS) == charts.bars("times", ROWS)


def test_two_charts_of_a_page_do_not_share_names():
    page = report.page("t", "l", [report.bars("one", ["a"], ROWS), report.bars("two", ["a"], ROWS)])
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert not re.search(r"""(src|href)=["']?https?:""", page) and len(page) < 60_000


@pytest.mark.parametrize("name", figures.FIGURES)
def test_pictures_of_the_readme_are_those_of_their_numbers(name):
    """`make figures` draws them. Each is small, and stands in the README."""
    drawn = figures.drawn(name)
    assert drawn == (figures.FOLDER / f"{name}.svg").read_text(), "run: make figures"
    ElementTree.fromstring(drawn)
    assert f"docs/figures/{name}.svg" in (ROOT / "README.md").read_text()
    data = figures.FOLDER / f"{name}.json"
    result = json.loads(data.read_text())
    assert data.stat().st_size < 60_000 and all(row["verified"] for row in result["rows"])
    assert result["meta"]["complete"]
