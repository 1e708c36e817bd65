# SPDX-License-Identifier: BSD-3-Clause
"""`offpath report`: a page about one recorded run, or two side by side."""

from pathlib import Path
from typing import Annotated

import typer

from offpath import comparison, console
from offpath.errors import UserError
from offpath.telemetry import operations, overview, page, perfetto, record


def report_command(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="One or two files of offpath run --trace.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")] = Path("report.html"),
    text: Annotated[bool, typer.Option("--text", help="The summary on stdout, and no page.")] = False,
) -> None:
    """Make a page of a recorded run: time of each rank, timeline, call sites, sizes, who waits for whom.

    The page is one file that needs no network. With two traces the runs lie side by side.

    Examples:

        offpath report trace.json

        offpath report before.json after.json -o both.html
    """
    if len(traces) > 2:
        raise UserError(f"{len(traces)} traces do not fit side by side (two do). Give one or two.")
    runs = []
    for file in traces:
        ranks = record.load(file)
        runs.append((file.name, operations.join(ranks, perfetto.site_names(file))))
    if text:
        for _, run in runs:
            overview.show(run, console.out)
        return
    comparison.writable_file(output, "--output")
    output.write_text(page.page(runs))
    console.note(f"{output}: open it in a browser.")
