# SPDX-License-Identifier: BSD-3-Clause
"""`offpath report`: a page about one recorded run, or two side by side."""

import contextlib
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.telemetry import overview, page, perfetto
from offpath.trace import record

app = commands.alone()


@app.command(rich_help_panel=commands.FIRST)
def report_command(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="One or two files of offpath run --trace.")],
    output: Annotated[
        Optional[Path], typer.Option("-o", "--output", help="The file to write. Default: report.html (--text: stdout).")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="The summary, and no page.")] = False,
    otf2: Annotated[
        Optional[Path],
        typer.Option(metavar="FOLDER", help="Write an OTF2 archive there, for Vampir and others, and no page."),
    ] = None,
) -> None:
    """Make a page of a recorded run: time of each rank, timeline, call sites, sizes, who waits for whom.

    The page is one file that needs no network. With two traces the runs lie side by side. An OTF2 archive
    is written by the package otf2 (pip install otf2).

    Examples:

        offpath report trace.json

        offpath report before.json after.json -o both.html

        offpath report trace.json --otf2 archive
    """
    if len(traces) > 2:
        raise UserError(f"{len(traces)} traces do not fit side by side (two do). Give one or two.")
    if otf2 is not None:
        if text or output:
            raise UserError("--otf2 writes a folder (--text and --output are of another view). Give it without them.")
        if len(traces) > 1:
            raise UserError(f"{len(traces)} traces are no archive (an archive holds one run). Give one with --otf2.")
        from offpath.telemetry import otf2_export  # who wants none need not wait for it

        return console.note(f"{otf2_export.write(traces[0], otf2)}: open it in Vampir, or read it with otf2-print.")
    runs = []
    for file in traces:
        runs.append((file.name, perfetto.load(file)))
        if cut := record.cut_short(runs[-1][1].ranks):
            console.fail(f"{file}: {cut}")
    output = output or (None if text else Path("report.html"))
    files.writable_file(output, "--output")
    if text:
        with console.to_file(output) if output else contextlib.nullcontext(console.out) as where:
            for _, run in runs:
                overview.show(run, where)
        return
    files.write_text(output, page.page(runs))
    console.note(f"{output}: open it in a browser.")
