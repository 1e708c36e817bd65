# SPDX-License-Identifier: BSD-3-Clause
"""`offpath top`: a running job, live."""

import contextlib
import json
import select
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.live import Live

from offpath.base import commands, console
from offpath.telemetry import jobs, top

app = commands.alone()


@app.command(rich_help_panel=commands.LOOK)
def top_command(
    job: jobs.Which = None,
    once: Annotated[bool, typer.Option("--once", help="Look for one interval, print, and end: for scripts.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON for each interval.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, max=3600, metavar="S", help="Seconds between looks.")] = 1.0,
) -> None:
    """Watch a running job on this node: operations in flight and what they wait for, time hidden, worker load.

    Attaches to the job's service and leaves it again as it likes; the job does not notice. Ends with the job, or with
    Ctrl-C. Where stdout is no terminal it prints plain text.

    Examples:

        offpath top

        offpath top --once --json

        offpath top --interval 5 12345
    """
    with contextlib.suppress(KeyboardInterrupt), jobs.watched(job) as watched:
        looks = _looks(watched, interval)
        if as_json:
            _each(looks, once, lambda data: print(json.dumps({"jobs": data}), flush=True))
        elif once or not console.out.is_terminal:
            _each(looks, once, lambda data: console.out.print(top.screen(data)))
        else:
            _full_screen(looks)
        for each in watched:
            if each.observation.ended():
                console.note(f"job {each.name} has ended.")


def _looks(watched: list[jobs.Job], interval: float) -> Iterator[list[dict]]:
    """At the end of each interval, until all jobs have ended; of such a job what was there before its ranks left."""
    shown = {job.name: top.job_data(job, job.last, job.last) for job in watched}
    running = list(watched)
    while running:
        _sleep(running, interval)
        for job in running:
            if job.observation.ended() and not job.follow():
                shown[job.name]["ended"] = True
                continue
            before = job.last
            if job.look().clients:
                shown[job.name] = top.job_data(job, before, job.last)
        yield list(shown.values())
        running = [job for job in running if not shown[job.name]["ended"]]


def _sleep(running: list[jobs.Job], seconds: float) -> None:
    """Shorter if a job ends."""
    select.select([job.observation for job in running], [], [], seconds)


def _each(looks: Iterator[list[dict]], once: bool, show) -> None:
    for data in looks:
        show(data)
        if once:
            return


def _full_screen(looks: Iterator[list[dict]]) -> None:
    data: list[dict] = []
    with Live(console=console.out, screen=True, auto_refresh=False) as live:
        for data in looks:
            live.update(top.screen(data), refresh=True)
    console.out.print(top.screen(data))
