# SPDX-License-Identifier: BSD-3-Clause
"""Small self-contained HTML pages: text, tables and bar charts in one file, light and dark, nothing from a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from offpath.pages import charts
from offpath.pages.charts import Bar

STYLE = """
:root{color-scheme:light dark;--bg:#fbfbf9;--card:#fff;--ink:#1d2228;--soft:#5d6670;--line:#dfe2e4;
--a:#a3acb5;--b:#0f7b6c;--c:#e0a030;--d:#c4583c;--e:#7d6bb0;--f:#3f78b5;--g:#8a6d3b;--h:#b8588a;--i:#94602b;--j:#4f8a3a}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--ink:#e8eaec;--soft:#9aa4ad;--line:#333a40;
--a:#69737d;--b:#3fb8a3;--c:#e8b452;--d:#e07b5f;--e:#a392d6;--f:#77aae0;--g:#c2a36b;--h:#e08fb5;--i:#d09a5e;--j:#8cc474}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.1rem;margin:0 0 .75rem}
.lead{color:var(--soft);margin:0 0 1.5rem;max-width:46rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1.25rem;margin:0 0 1.25rem}
.scroll{overflow-x:auto}
.figures{display:flex;flex-wrap:wrap;gap:1rem;margin:0 0 1.25rem}
.figure{flex:1 1 10rem;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1rem 1.25rem}
.figure b{display:block;font-size:1.9rem;line-height:1.15;font-variant-numeric:tabular-nums}
.figure span,.note,dt{color:var(--soft);font-size:.88rem}
.note{margin:.75rem 0 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.92rem}
th,td{padding:.4rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}
th{color:var(--soft);font-weight:600}
.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;margin:.6rem 0 0;font-size:.88rem;color:var(--soft)}
.legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}
svg{display:block;width:100%;height:auto}
svg text{font-family:system-ui,-apple-system,"Segoe UI",sans-serif}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1.2rem;margin:0;font-size:.88rem}
dd{margin:0;overflow-wrap:anywhere}
"""


def page(title: str, lead: str, sections: Sequence[str]) -> str:
    """In ASCII: any locale can write it, and names of files that are no text are no error."""
    text = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f'<body><main><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>\n'
        + "\n".join(sections)
        + "\n</main></body></html>\n"
    )
    return text.encode("ascii", "xmlcharrefreplace").decode()


def card(heading: str, *content: str, note: str = "") -> str:
    ending = f'<p class="note">{escape(note)}</p>' if note else ""
    return f'<section class="card"><h2>{escape(heading)}</h2>{"".join(content)}{ending}</section>'


def figures(pairs: Sequence[tuple[str, str]]) -> str:
    """Large numbers with a line below each."""
    boxes = (f'<div class="figure"><b>{escape(value)}</b><span>{escape(text)}</span></div>' for value, text in pairs)
    return f'<div class="figures">{"".join(boxes)}</div>'


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def facts(values: dict) -> str:
    """Names and values, those without a value left out."""
    items = ((name, value) for name, value in values.items() if value not in (None, "", [], {}))
    return (
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(_plain(value))}</dd>" for name, value in items) + "</dl>"
    )


def bars(description: str, series: Sequence[str], rows: Sequence[Bar], limit: float | None = None) -> str:
    """Horizontal bars, and below them which colour is what. `series` has "" for colours that are not used."""
    return f'<div class="scroll">{charts.bars(description, rows, limit)}</div>{_legend(series)}'


def lines(description: str, x: Sequence[float], curves: Mapping[str, Sequence[float]], *labels: str) -> str:
    """Curves over x, both logarithmic; `labels`: of x and of y."""
    return f'<div class="scroll">{charts.lines(description, x, curves, *labels)}</div>{_legend(list(curves))}'


def _legend(series: Sequence[str]) -> str:
    keys = (
        f'<span><i style="background:var(--{charts.SERIES[i]})"></i>{escape(name)}</span>'
        for i, name in enumerate(series)
        if name
    )
    return f'<div class="legend">{"".join(keys)}</div>'


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(_plain(each) for each in value)
    return str(value)
