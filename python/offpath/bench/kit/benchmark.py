# SPDX-License-Identifier: BSD-3-Clause
"""What is said of a result ({"meta", "rows"}): tables, goals, a page. How it is judged is the same for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import typer

from offpath.base import console, files
from offpath.bench import goals
from offpath.bench.kit import trust
from offpath.bench.kit.tables import Shown
from offpath.pages import report

Values = Callable[[list[dict]], Iterable[float]]  # of rows whose results are right


@dataclass(frozen=True)
class Page:
    """Of --html: what stands above the tables."""

    title: str
    lead: str


@dataclass(frozen=True)
class Benchmark:
    tables: Sequence[Shown]
    goals: Mapping[str, Values] = field(default_factory=dict)  # by the goal's name
    subject: Callable[[dict], str] = lambda row: ""  # whose goal: each has values of its own
    aimed_at: Callable[[dict], bool] = lambda meta: True  # whether these conditions are those of the goals
    page: Page | None = None

    def checks(self, result: dict) -> list[dict]:
        right = [row for row in trust.all_rows(result) if row.get("verified")]
        found, rate = [], result["meta"].get("rate")
        if self.aimed_at(result["meta"]):
            for subject in dict.fromkeys(map(self.subject, right)):
                mine = [row for row in right if self.subject(row) == subject]
                for name, values in self.goals.items():
                    if goals.BY_NAME[name].rate in (None, rate):
                        found += goals.check(name, values(mine), subject)
        return found

    def show(self, result: dict) -> None:
        for table in self.tables:
            table.show(result)
        for failure in result["meta"].get("failures", ()):
            labels = ", ".join(str(value) for name, value in failure.items() if name != "problem" and value is not None)
            console.note(f"failed: {labels}: {failure['problem']}")

    def html(self, result: dict) -> str:
        assert self.page is not None
        sections = [card for table in self.tables for card in table.cards(result)]
        meta = {name: value for name, value in result["meta"].items() if name not in ("failures", "ranks")}
        meta["failed launches"] = [
            " ".join(str(value) for name, value in failure.items() if name != "problem")
            for failure in result["meta"].get("failures", ())
        ]
        sections.append(report.card("How this was measured", report.facts(meta)))
        return report.page(self.page.title, self.page.lead, sections)

    def deliver(self, result: dict, json_file: Path | None, html_file: Path | None = None) -> None:
        """The end of every benchmark: judges the result, writes and shows it, whichever of both fails, and ends the
        command with its status."""
        result["checks"] = self.checks(result)
        trust.judge(result)
        found = trust.all_rows(result) or result["meta"].get("failures")  # else what was there before says more
        try:
            if json_file and found:
                files.write_json(json_file, result)
            if html_file and found:
                files.write_text(html_file, self.html(result))
        finally:
            self.show(result)
            trust.show(result)
        raise typer.Exit(trust.exit_status(result))
