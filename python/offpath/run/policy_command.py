# SPDX-License-Identifier: BSD-3-Clause
"""`offpath policy`: what runs with an automatic policy have learned."""

import json
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich import box

from offpath.base import commands, console
from offpath.base.sizes import ms_text
from offpath.base.tables import Table
from offpath.launch import memory

app = commands.group(part=commands.LOOK)


@app.callback()
def policy() -> None:
    """Show or clear what `offpath run --policy auto` has learned."""


@app.command("list")
def list_command(as_json: commands.AsJson = False) -> None:
    """Show what was learned: per program and range of sizes the better path, and the time between two calls on each."""
    known = memory.practices()
    if as_json:
        print(json.dumps(known, indent=1))
        return
    if not known:
        console.note(f"nothing was learned yet ({memory.file()}). Run: offpath run --policy auto -- COMMAND")
        return
    table = Table("program", "range", "path", "host ms", "DPU ms", "calls", "seen", keys=2, box=box.SIMPLE_HEAD)
    for each in known:
        table.add_row(
            each["program"], each["range"], each["path"], ms_text(each["host_ns"]), ms_text(each["dpu_ns"]),
            str(each["turns"]), each["seen"],
        )  # fmt: skip
    console.out.print(table)


@app.command()
def forget(
    program: Annotated[Optional[str], typer.Argument(help="Forget this program only. Default: everything.")] = None,
) -> None:
    """Forget what was learned, of one program or of all."""
    console.note(f"{memory.forget(program)} forgotten.")


@app.command("export")
def export_command(file: Annotated[Path, typer.Argument(help="JSON file to write.")]) -> None:
    """Write what was learned to a file, for other users, or for a whole site as /etc/offpath/practices.json."""
    console.note(f"{memory.write_file(file)} written to {file}.")


@app.command("import")
def import_command(file: Annotated[Path, typer.Argument(help="JSON file that was exported.")]) -> None:
    """Take in what was exported elsewhere: what is new here, or newer."""
    console.note(f"{memory.take_in(memory.read_file(file))} taken from {file}.")
