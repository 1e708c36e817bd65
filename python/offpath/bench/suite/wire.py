# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench wire`: what the lab's wire itself takes from whoever computes beside it, and so the efficiency that
the best of all services could reach."""

from __future__ import annotations

import functools
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.sizes import parse_sizes
from offpath.bench import wire_cost
from offpath.bench.kit import Benchmark, Case, Site, Table, options, rows, turns
from offpath.lab import Lab
from offpath.lab.plan import parse_rate
from offpath.places import comparison

BENCHMARK = Benchmark([
    Table("The wire beside a computation on the same core", [
        ("rate", lambda row: f"{row['rate_bits_per_s'] / 1e6:g} Mbit/s"), ("size", "{bytes:size}"),
        ("wire ms", "{wire_ns:ms}"), ("speed left", "{slowdown:.2f}"), ("processes", "{process_share:.2f}"),
        ("interrupts", "{interrupt_share:.2f}"), ("reachable", "{reachable_efficiency:.2f}"),
    ]),
])  # fmt: skip

app = commands.alone()


@app.command()
def wire_command(
    rates: Annotated[str, typer.Option("--rate", help="Rates of the lab's links, separated by commas.")] = (
        "250mbit,1gbit"
    ),
    sizes: Annotated[str, typer.Option(help="Bytes each way.")] = "256K,1M,4M",
    runs: Annotated[int, typer.Option(min=1, help="Launches for each rate, in turns.")] = 3,
    milliseconds: Annotated[int, typer.Option(min=10, max=60000, help="Length of each measurement.")] = 500,
    json_file: options.JsonFile = None,
) -> None:
    """Measure what the emulated wire costs: two processes exchange blocks as cheaply as a kernel lets them, straight
    from and into their own memory, while a process on the same core computes.

    wire is the time of an exchange, speed what is left of the computation's while it lasts, processes and interrupts
    what takes the rest. Reachable is the efficiency, max(t_pure, t_compute) / t_total, of a service that costs no more
    than these processes: more than that nobody reaches here.

    Example:

        offpath bench wire --rate 1gbit --sizes 1M,4M --json wire.json
    """
    byte_sizes, chosen = parse_sizes(sizes), {rate: parse_rate(rate) for rate in options.words(rates)}
    options.check_files(json_file)
    options.require_lab("A wire is")
    sites = [
        Site([[Case({"rate_bits_per_s": bits}, functools.partial(wire_cost.launch, byte_sizes, milliseconds))]],
             functools.partial(Lab, nodes=2, rate=rate))
        for rate, bits in chosen.items()
    ]  # fmt: skip
    meta = comparison.base_meta([]) | turns.measure(sites, runs)
    found = rows.of_cases((case for site in sites for case in site.cases), wire_cost.MEASURED)
    BENCHMARK.deliver({"meta": meta, "rows": found}, json_file)
