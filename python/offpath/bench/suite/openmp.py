# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench openmp`: what target regions cost on a device, and kernels on the device beside the host."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench import halo as halo_exchange
from offpath.bench.kit import Benchmark, Case, Site, Table, options, programs, turns
from offpath.dpu import listing
from offpath.places import asked, comparison

KERNELS = ("stencil", "mriq", "lbm", "cg", "spmv", "ep")
ROW_OF_GOAL = {
    "openmp_empty_region_us": "empty region",
    "openmp_map_us": "map(tofrom) of 128 B",
    "openmp_bulk_to_ratio": "bulk map(to) / memcpy",
    "openmp_bulk_from_ratio": "bulk map(from) / memcpy",
    "openmp_overlap_ratio": "overlap of nowait and host",
    "openmp_halo_ratio": "halo: step / longer part",
}
FORMATS = {"us": "{:.1f} us", "ms": "{:.3f} ms", "GB/s": "{:.2f} GB/s", "1": "{:.2f}"}


def _value(which: str) -> Callable[[dict], str]:
    return lambda row: FORMATS[row["unit"]].format(row["value"][which])


def _median(row: str) -> Callable[[list[dict]], list[float]]:
    return lambda rows: [each["value"]["median"] for each in rows if each.get("name") == row]


BENCHMARK = Benchmark(
    [
        Table("Regions and maps", [
            ("what", "{name}"), ("median", _value("median")), ("lowest", _value("min")), ("highest", _value("max")),
        ], of="regions"),
        Table("Kernels", [
            ("kernel", "{kernel}"), ("size", "{size}"), ("device", "{device_s[median]:.4f} s"),
            ("host", "{host_s[median]:.4f} s"),
            ("host / device", lambda row: f"{row['host_s']['median'] / row['device_s']['median']:.2f}"),
        ], of="kernels", keys=2),
    ],
    {goal: _median(row) for goal, row in ROW_OF_GOAL.items()},
)  # fmt: skip

app = commands.alone()


@app.command()
def openmp_command(
    runs: asked.Runs = 3,
    repeats: Annotated[int, typer.Option(min=1, help="Short regions in each launch.")] = 2000,
    size_mib: Annotated[int, typer.Option("--map", min=1, help="MiB of a bulk map.")] = 64,
    kernels: Annotated[str, typer.Option(help="Which kernels, separated by commas; none: no kernels.")] = ",".join(
        KERNELS
    ),
    small: Annotated[bool, typer.Option("--small", help="Small kernels, for an emulated device.")] = False,
    halo: Annotated[int, typer.Option(min=0, help="Steps of the halo exchange in each launch; 0: none.")] = 50,
    device: Annotated[
        int,
        typer.Option(min=0, help="Number of the device that runs the kernels, where `offpath devices` lists several."),
    ] = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Measure target regions on the devices of OFFPATH_DEVICES; by default, a software DPU of this node.

    An empty region and one that maps 128 bytes, both ways; a map of many bytes against one memcpy into memory that
    another process has mapped; a `nowait` region and the host computing for 20 ms each (1: both take the time of one);
    a step of apps/halo on two cores, its outer part on a software DPU that has one of them, against the longer of its
    parts and against the host alone on both; and each kernel of apps/accel on the device
    and, with as many threads as OpenMP takes there, on the host. Unless OFFPATH_SERVICE_CORES is set, the software DPU
    has the last of this process's cores: where region and host share one, each waits for the other's turn.

    Examples:

        offpath bench openmp

        offpath bench openmp --kernels lbm,cg --runs 5 --json result.json

        OFFPATH_DEVICES=dpu=10.0.0.2:7001 offpath bench openmp
    """
    names = [] if kernels == "none" else options.names(kernels, KERNELS, "a kernel")
    options.check_files(json_file)
    devices = [row for row in listing.collect() if row["number"] is not None]
    if not devices:
        raise UserError("No device answers (there is nothing to measure). See: offpath devices", 1)
    if "OFFPATH_SERVICE_CORES" not in os.environ and len(cores := os.sched_getaffinity(0)) > 1:
        os.environ["OFFPATH_SERVICE_CORES"] = str(max(cores))
    regions = [paths().openmp_program("bench", "regions"), "--repeats", repeats, "--bytes", size_mib << 20]
    accel = [paths().openmp_program("apps", "accel"), "--json", "--device", device, *(["--small"] if small else [])]
    parts = [Case({"part": "regions"}, functools.partial(_launch, regions))]
    if halo:
        parts.append(Case({"part": "halo"}, lambda _: halo_exchange.rows(halo)))
    of_kernels = [Case({"kernel": name}, functools.partial(_launch, [*accel, "--kernel", name])) for name in names]
    meta = comparison.base_meta([]) | {"devices": devices} | turns.measure([Site([parts, of_kernels])], runs)
    result = {"meta": meta, "regions": [], "kernels": []}
    for case in parts:
        result["regions"] += _over_launches(case.launches, ("name", "unit"), ("value",))
    for case in of_kernels:
        result["kernels"] += _over_launches(case.launches, ("kernel", "size"), ("device_s", "host_s"))
    BENCHMARK.deliver(result, json_file)


def _launch(argv: Sequence, _: object) -> list[dict]:
    """What one launch printed, an object a line."""
    return [json.loads(line) for line in programs.output(argv).splitlines() if line.startswith(b"{")]


def _over_launches(launches: list[list[dict]], labels: Sequence[str], values: Sequence[str]) -> list[dict]:
    return [
        {name: same[0][name] for name in labels}
        | {"verified": all(row.get("ok", True) for row in same), "runs": len(same)}
        | {name: comparison.spread([row[name] for row in same]) for name in values}
        for same in zip(*launches)
    ]
