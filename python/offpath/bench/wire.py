# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench wire`: what the lab's wire itself takes from whoever computes beside it, and so the efficiency that
the best of all services could reach."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.sizes import ms_text, parse_sizes, size_text
from offpath.base.tables import Table
from offpath.bench import results, wire_cost
from offpath.lab.plan import parse_rate
from offpath.places import comparison

DEFAULT_SIZES = "256K,1M,4M"

app = commands.alone()


@app.command()
def wire_command(
    rates: Annotated[str, typer.Option("--rate", help="Rates of the lab's links, separated by commas.")] = (
        "250mbit,1gbit"
    ),
    sizes: Annotated[str, typer.Option(help="Bytes each way.")] = DEFAULT_SIZES,
    runs: Annotated[int, typer.Option(min=1, help="Launches for each rate, in turns.")] = 3,
    milliseconds: Annotated[int, typer.Option(min=10, max=60000, help="Length of each measurement.")] = 500,
    json_file: results.JsonFile = None,
) -> None:
    """Measure what the emulated wire costs: two processes exchange blocks as cheaply as a kernel lets them, straight
    from and into their own memory, while a process on the same core computes.

    wire is the time of an exchange, speed what is left of the computation's while it lasts, processes and interrupts
    what takes the rest. Reachable is the efficiency, max(t_pure, t_compute) / t_total, of a service that costs no more
    than these processes: more than that nobody reaches here.

    Example:

        offpath bench wire --rate 1gbit --sizes 1M,4M --json wire.json
    """
    byte_sizes = parse_sizes(sizes)
    chosen = [rate.strip() for rate in rates.split(",")]
    for rate in chosen:
        parse_rate(rate)
    files.writable_file(json_file, "--json")
    if not comparison.lab_is_possible():
        raise UserError("A wire is measured in a lab (which needs root). Run it as root.")
    found = [wire_cost.measure(rate, byte_sizes, runs, milliseconds) for rate in chosen]
    result = {"meta": comparison.base_meta([]) | {"runs": runs}, "rows": [row for rows in found for row in rows]}
    results.deliver(result, show, json_file)


def show(result: dict) -> None:
    title = "The wire beside a computation on the same core"
    columns = ("rate", "size", "wire ms", "speed left", "processes", "interrupts", "reachable")
    table = Table(*columns, title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    for row in result["rows"]:
        table.add_row(
            f"{row['rate_bits_per_s'] / 1e6:g} Mbit/s",
            size_text(row["bytes"]),
            ms_text(row["wire_ns"]),
            *(f"{row[name]:.2f}" for name in wire_cost.SHARES),
        )
    console.out.print(table)
