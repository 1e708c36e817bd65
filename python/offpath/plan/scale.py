# SPDX-License-Identifier: BSD-3-Clause
"""`offpath plan scale`: time against number of nodes, in closed form over the service's own graphs."""

import json
import math
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, files
from offpath.base.sizes import parse_numbers, parse_sizes, size_text
from offpath.base.tables import Table
from offpath.plan import machine as machines
from offpath.plan import model, pages
from offpath.plan.hardware import Hardware

KINDS = ("ialltoall", "iallgather", "ibcast", "iallreduce")
COMPLEX_BYTES = 16
FLOP_PER_POINT = 5  # of an FFT: 5 n log2 n
MOST_NODES = 1 << 17


@commands.by_concern
def scale_command(
    hardware: Hardware,
    nodes: Annotated[str, typer.Option(help="Numbers of nodes.")] = "2,4,8,16,64,256,1024,4096",
    ppn: Annotated[int, typer.Option(min=1, max=256, help="Ranks per node.")] = 1,
    size: Annotated[str, typer.Option(help="All bytes that a rank sends or receives.")] = "4M",
    points: Annotated[int, typer.Option(min=8, help="Points of the FFT along one side.")] = 1024,
    html: Annotated[Optional[Path], typer.Option(help="Write a page with charts there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Predict collectives and a 3-D FFT on up to thousands of nodes, on the host and on the DPU.

    Collectives: the time of the call alone, for a vector that stays as long while nodes are added. FFT: one transform
    forth and back of the same box, computation included; the DPU hides the exchange behind it.

    Examples:

        offpath plan scale --machine machine.json --link 100gbit --dpu-cores 8 --dpu-speed 0.4
    """
    files.writable_file(html, "--html")
    machine = hardware.asked(hardware.known()[0])
    counts = parse_numbers(nodes, "--nodes", 2, MOST_NODES)
    [total] = parse_sizes(size)
    result = scale(machine, counts, ppn, total, points)
    if html:
        files.write_text(html, pages.scale(result))
    if as_json:
        print(json.dumps(result, indent=1))
        return
    for name in dict.fromkeys(row["operation"] for row in result["rows"]):
        title = f"{name}, {points}^3 points" if name == "fft" else f"{name}, {size_text(total)}"
        table = Table("nodes", "host, ms", "DPU, ms", "host / DPU", title=title)
        for row in result["rows"]:
            if row["operation"] == name:
                host, dpu = row["host_ns"], row["dpu_ns"]
                table.add_row(str(row["nodes"]), f"{host / 1e6:.3f}", f"{dpu / 1e6:.3f}", f"{host / dpu:.2f}")
        console.out.print(table)


def scale(machine: dict, counts: list[int], ppn: int, total: int, points: int) -> dict:
    rows = []
    for count in counts:
        block = points**3 * COMPLEX_BYTES // (count * ppn)  # of a rank: what an exchange moves
        operations = [
            {"kind": kind, "bytes": size, "path": path}
            for kind, size in (*((kind, total) for kind in KINDS), ("ialltoall", block))
            for path in (model.HOST, model.DPU)
        ]
        request = {"do": "price", "machine": machine, "nodes": [count], "ppn": ppn, "operations": operations}
        [prices] = model.ask(request)["prices"]
        for index, kind in enumerate((*KINDS, "fft")):
            host, dpu = prices[2 * index], prices[2 * index + 1]
            times = host["total_ns"], dpu["total_ns"]
            if kind == "fft":
                times = _fft(machine, points, count * ppn, host, dpu)
            rows.append({"operation": kind, "nodes": count, "ppn": ppn, "host_ns": times[0], "dpu_ns": times[1]})
    return {"bytes": total, "points": points, "rows": rows}


def _fft(machine: dict, points: int, ranks: int, host: dict, dpu: dict) -> tuple[float, float]:
    """Two transforms with an exchange each; the host's exchange hides nothing that needs an answer."""
    flop_per_ns = machines.rates(machine).core_flop_per_s / 1e9
    compute = 3 * FLOP_PER_POINT * points**3 * math.log2(points) / ranks / flop_per_ns
    stolen = 0 if machine["service"]["own_cores"] else dpu["agent_ns"]
    exposed = max(0.0, host["total_ns"] - compute) if host["hides"] else host["total_ns"]
    return 2 * (compute + exposed), 2 * max(compute + stolen, dpu["total_ns"])
