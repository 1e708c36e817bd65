# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench worker`: what a service's worker moves per second inside this machine, beside memcpy."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import parse_sizes, size_text
from offpath.base.tables import Table
from offpath.bench import results
from offpath.places import comparison

PATIENCE_S = 600.0
# What says which row or message it is; the rest is measured.
KEYS = ("way", "security", "bytes", "workers_count")

app = commands.alone()


@app.command()
def worker_command(
    ways: Annotated[str, typer.Option(help="Between ranks of one worker (near), of two, of two services.")] = (
        "near,workers,sockets"
    ),
    security: Annotated[str, typer.Option(help="Of sockets: auth, encrypt, user-data-unprotected.")] = "auth",
    sizes: Annotated[str, typer.Option(help="Bytes of a block.")] = "64K,256K,1M,4M,16M",
    runs: Annotated[int, typer.Option(min=1, help="Launches.")] = 3,
    milliseconds: Annotated[int, typer.Option(min=1, max=60000, help="Length of each measurement, about.")] = 300,
    json_file: results.JsonFile = None,
) -> None:
    """Measure what a worker of the service moves per second inside this machine: two ranks exchange blocks that lie in
    shared memory, out of 64 MiB each way.

    near: one worker serves both. workers: two workers of one service. sockets: two services, over the loopback device.
    copies is how often each byte is copied, counted at ports and sockets; memcpy what as many threads copy of the same
    blocks; ratio moved x copies / memcpy: 1 is a worker that does nothing but copy. Over sockets short messages are
    timed, too. It wants two cores with nothing else on them.

    Example:

        offpath bench worker --security auth,encrypt --json worker.json
    """
    byte_sizes = parse_sizes(sizes)
    files.writable_file(json_file, "--json")
    options = ["--ways", ways, "--security", security, "--sizes", ",".join(map(str, byte_sizes))]
    launches = [_launch([*options, "--milliseconds", str(milliseconds)]) for _ in range(runs)]
    tables = {name: _medians([launch[name] for launch in launches]) for name in ("rows", "messages")}
    result = {"meta": comparison.base_meta([]) | {"runs": runs}} | tables
    results.deliver(result, show, json_file)


def _launch(options: Sequence[str]) -> dict:
    program = str(paths().require_worker_program())
    done = subprocess.run([program, *options], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode == 2:
        raise UserError(done.stderr.strip().removeprefix("offpath-worker: "))
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise UserError(f"A worker cannot be measured ({said[-1]}). Run: make build", 1)
    return json.loads(done.stdout)


def _medians(launches: Sequence[list[dict]]) -> list[dict]:
    """Of each row, with the lowest and the highest."""
    rows = []
    for samples in zip(*launches):
        row = {name: value for name, value in samples[0].items() if name in KEYS}
        row |= {"runs": len(samples), "verified": True}  # a program that finds a wrong block ends the command
        for name in samples[0]:
            if name in KEYS:
                continue
            values = [sample[name] for sample in samples]
            digits = 0 if name.endswith("_per_s") else 4
            row[name] = round(statistics.median(values), digits)
            row[f"{name}_min"], row[f"{name}_max"] = round(min(values), digits), round(max(values), digits)
        rows.append(row)
    return rows


def show(result: dict) -> None:
    table = _table(
        "What workers move inside this machine", "way", "size", "GB/s", "copies", "memcpy GB/s", "ratio", "min-max"
    )
    for row in result["rows"]:
        table.add_row(
            " ".join(filter(None, (row["way"], row["security"]))),
            size_text(row["bytes"]),
            f"{row['moved_bytes_per_s'] / 1e9:.2f}",
            f"{row['copies_per_byte']:.2f}",
            f"{row['memcpy_bytes_per_s'] / 1e9:.2f}",
            f"{row['memcpy_ratio']:.2f}",
            f"{row['memcpy_ratio_min']:.2f}-{row['memcpy_ratio_max']:.2f}",
        )
    console.out.print(table)
    if not result["messages"]:
        return
    table = _table("Short messages over sockets", "security", "bytes", "ns each")
    for row in result["messages"]:
        table.add_row(row["security"], str(row["bytes"]), f"{row['message_ns']:.0f}")
    console.out.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(*columns, title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.justify, column.no_wrap = "right", True
    return table
