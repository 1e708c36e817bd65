# SPDX-License-Identifier: BSD-3-Clause
"""Launches in turns, so that all cases meet the same machine.

A launch that fails is counted and left out; Ctrl-C ends the measurement, and what was measured until then is kept.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from offpath.base import console
from offpath.base.errors import UserError

FAILED = 1  # exit code of a UserError that says how a launch failed; others say what was asked for in vain


@dataclass
class Case:
    """One of what is compared. `labels` say which: a row begins with them, and a failure has them. `launch` measures it
    once at a place; raises UserError."""

    labels: Mapping[str, Any]
    launch: Callable[[Any], Any]
    once: bool = False  # in the first turn only
    launches: list = field(default_factory=list)

    @property
    def title(self) -> str:
        return ", ".join(str(value) for value in self.labels.values() if value is not None)


@dataclass
class Site:
    """A place, there while its cases are measured. Those of one round take turns; one round follows the other."""

    rounds: Sequence[Sequence[Case]]
    open: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext
    at_end: Callable[[Any], dict] | None = None  # what else is measured there, for the result's meta

    @property
    def cases(self) -> list[Case]:
        return [case for each in self.rounds for case in each]


def measure(sites: Sequence[Site], runs: int, seconds: float | None = None) -> dict:
    """Fills the cases with launches. For the result's meta: how many were wanted, whether all were made, those that
    failed; and what the place says of itself, if there is one place. `seconds`: about how long it takes."""
    meta: dict = {"runs": runs, "complete": False, "failures": []}
    count = sum(1 if case.once else runs for site in sites for case in site.cases)
    with announced(count, seconds) as progress:
        task = progress.task_ids[0]
        try:
            for site in sites:
                with site.open() as where:
                    if len(sites) == 1:
                        meta |= getattr(where, "meta", {})
                    for case, run in _in_turns(site, runs):
                        progress.update(task, description=f"run {run + 1} of {runs} {case.title}")
                        _launch(case, where, meta["failures"])
                        progress.advance(task)
                    if site.at_end:
                        meta |= site.at_end(where)
        except (KeyboardInterrupt, SystemExit):  # Ctrl-C, or the SIGTERM of a time limit
            progress.update(task, description="interrupted")
            done = progress.tasks[0].completed
            console.note(f"interrupted after {done:.0f} of {count} launches: incomplete.")
            return meta
        progress.update(task, description="done")
    return meta | {"complete": True}


@contextlib.contextmanager
def announced(launches: int, seconds: float | None) -> Iterator[Progress]:
    """Says before how long it takes, and on a terminal how far it is."""
    about = "" if seconds is None else f", about {duration_text(seconds)}"
    console.note(f"{launches} launches{about}. Ctrl-C ends it and keeps what was measured until then.")
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    hidden = not console.is_interactive()
    with Progress(*columns, TimeRemainingColumn(), console=console.err, disable=hidden) as progress:
        progress.add_task("", total=launches)
        yield progress


def duration_text(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _in_turns(site: Site, runs: int) -> Iterator[tuple[Case, int]]:
    for cases in site.rounds:
        for run in range(runs):
            yield from ((case, run) for case in cases if run == 0 or not case.once)


def _launch(case: Case, where: Any, failures: list[dict]) -> None:
    try:
        case.launches.append(case.launch(where))
        return
    except subprocess.TimeoutExpired as error:
        problem = f"did not end within {error.timeout:.0f} s (it hangs). Please report this."
    except UserError as error:
        if error.exit_code != FAILED:
            raise
        problem = str(error)
    if not any(each | {"problem": ""} == {**case.labels, "problem": ""} for each in failures):
        console.note(f"{case.title}: {problem}")
    failures.append({**case.labels, "problem": problem})
