# SPDX-License-Identifier: BSD-3-Clause
"""Published measurements: docs/figures/results/NAME.json, each a table of one of the performance pages.

  benchmark, about      what was measured, and in which setting
  command, conditions   how: one command or several, and a sentence; both stand above the table
  launches              of each value: one gives no verdict on a goal
  columns               [title, template of a cell]
  group                 fields: rows that have the same in these are one row of the table, values side by side
  rows                  numbers as they are shown: 1.50 stays 1.50

A template names fields, {x:+} with a sign, {x:,} with commas; what is in brackets is left out where its field is null.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "figures" / "results"
FRONT = ROOT / "docs" / "performance.md"
PAGES = [FRONT, *sorted((ROOT / "docs" / "performance").glob("*.md"))]
MARKED = r"(<!-- {} -->\n).*?(\n<!-- end -->)"
LABELS = {"nodes": ("{} nodes", ""), "atoms": ("{} atoms", ","), "slower": ("{}x slower", ""),
          "every": ("every {}", ""), "latency": ("latency {}", ""), "tile": ("tiles of {}", "")}  # fmt: skip
FIELD = re.compile(r"\{(\w+)(?::([+,]))?\}")


class Number(float):
    """As the file writes it."""

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def shown(self, how: str = "") -> str:
        if how == ",":
            return f"{int(self):,}"
        return f"+{self.text}" if how == "+" and not self.text.startswith("-") else self.text


def load(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.json").read_text(), parse_float=Number, parse_int=Number)


def names() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def numbers(value: object) -> list[float]:
    """Of a field that holds one, several, or none."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, float)]


def label(row: dict) -> str:
    """What says which row it is: its words, and the numbers that are no results."""
    words = [value for name, value in row.items() if isinstance(value, str) and name not in ("check", "unit")]
    for name, (text, how) in LABELS.items():
        if isinstance(row.get(name), Number):
            words.append(text.format(row[name].shown(how)))
    return ", ".join(words)


def block(result: dict) -> str:
    """How it was measured, and the table."""
    how = textwrap.fill(f"{result['conditions'][:1].upper()}{result['conditions'][1:]}.", 120, break_on_hyphens=False)
    return "\n\n".join(filter(None, ("\n".join(f"    {each}" for each in commands(result)), how, table(result))))


def commands(result: dict) -> list[str]:
    found = result.get("command", [])
    return [found] if isinstance(found, str) else found


def table(result: dict) -> str:
    titles, templates = zip(*result["columns"])
    rows = grouped(result["rows"], result["group"]) if "group" in result else result["rows"]
    lines = [titles, ["---"] * len(titles), *([cell(each, row) for each in templates] for row in rows)]
    return "\n".join("|" + "|".join(line) + "|" if line[0] == "---" else f"| {' | '.join(line)} |" for line in lines)


def grouped(rows: list[dict], keys: list[str]) -> list[dict]:
    """Rows with the same keys are one, whose other fields are lists of what those have."""
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault(tuple(str(row[key]) for key in keys), []).append(row)
    return [
        {name: [row[name] for row in same if row[name] is not None] or None for name in same[0]}
        | {key: same[0][key] for key in keys}
        for same in found.values()
    ]


def cell(template: str, row: dict) -> str:
    def filled(text: str) -> str:
        return FIELD.sub(lambda found: _shown(row.get(found[1]), found[2] or ""), text)

    fields = [found[1] for found in FIELD.finditer(re.sub(r"\[.*?\]", "", template))]
    if all(row.get(name) is None for name in fields):
        return "-"
    optional = re.compile(r"\[(.*?)\]")
    return filled(optional.sub(lambda found: "" if _lacks(found[1], row) else found[1], template))


def _lacks(part: str, row: dict) -> bool:
    return any(row.get(found[1]) is None for found in FIELD.finditer(part))


def _shown(value: object, how: str) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(each, how) for each in value)
    return value.shown(how) if isinstance(value, Number) else str(value)


def with_block(text: str, mark: str, block: str) -> str:
    """The document with what stands between `<!-- mark -->` and `<!-- end -->` made anew."""
    changed, count = re.subn(
        MARKED.format(re.escape(mark)), lambda found: found[1] + block + found[2], text, flags=re.S
    )
    if count != 1:
        raise ValueError(f"<!-- {mark} --> is there {count} times")
    return changed


def tables() -> Iterator[tuple[str, str]]:
    """Marks and blocks of all that was published."""
    for name in names():
        yield f"results {name}", block(load(name))
