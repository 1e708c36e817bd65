# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench openmp`: what target regions cost on a device, and kernels on the device beside the host."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.oldest import zip_equal
from offpath.base.paths import paths
from offpath.base.tables import Table
from offpath.bench import goals, results
from offpath.bench.halo import rows as halo_rows
from offpath.dpu import listing
from offpath.places import comparison

KERNELS = ("stencil", "mriq", "lbm", "cg", "spmv", "ep")
RUN_LIMIT_S = 600.0
ROW_OF_GOAL = {
    "openmp_empty_region_us": "empty region",
    "openmp_map_us": "map(tofrom) of 128 B",
    "openmp_bulk_to_ratio": "bulk map(to) / memcpy",
    "openmp_bulk_from_ratio": "bulk map(from) / memcpy",
    "openmp_overlap_ratio": "overlap of nowait and host",
    "openmp_halo_ratio": "halo: step / longer part",
}
FORMATS = {"us": "{:.1f} us", "ms": "{:.3f} ms", "GB/s": "{:.2f} GB/s", "1": "{:.2f}", "s": "{:.4f} s"}

app = commands.alone()


@app.command()
def openmp_command(
    runs: Annotated[int, typer.Option(min=1, help="Launches; medians over them are shown.")] = 3,
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
    json_file: results.JsonFile = None,
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
    names = [] if kernels == "none" else [name.strip() for name in kernels.split(",")]
    for name in names:
        if name not in KERNELS:
            raise UserError(f"'{name}' is not a kernel measured here. Give some of {', '.join(KERNELS)}, or none.")
    files.writable_file(json_file, "--json")
    devices = [row for row in listing.collect() if row["number"] is not None]
    if not devices:
        raise UserError("No device answers (there is nothing to measure). See: offpath devices", 1)
    if "OFFPATH_SERVICE_CORES" not in os.environ and len(cores := os.sched_getaffinity(0)) > 1:
        os.environ["OFFPATH_SERVICE_CORES"] = str(max(cores))
    regions, accel = paths().openmp_program("bench", "regions"), paths().openmp_program("apps", "accel")
    result = {"meta": comparison.base_meta([]) | {"devices": devices, "runs": runs}, "regions": [], "kernels": []}
    size = ["--small"] if small else []
    launches = [_rows([regions, "--repeats", repeats, "--bytes", size_mib << 20]) for _ in range(runs)]
    result["regions"] = _over_launches(launches, "name", ("unit",), ("value",))
    if halo:
        launches = [halo_rows(halo) for _ in range(runs)]
        result["regions"] += _over_launches(launches, "name", ("unit",), ("value",))
    for name in names:
        launches = [_rows([accel, "--kernel", name, "--json", "--device", device, *size]) for _ in range(runs)]
        result["kernels"] += _over_launches(launches, "kernel", ("size", "ok"), ("device_s", "host_s"))
    result["checks"] = checks(result)
    results.deliver(result, _show, json_file)


def checks(result: dict) -> list[dict]:
    medians = {row["name"]: row["value"]["median"] for row in result["regions"]}
    found = []
    for goal, row in ROW_OF_GOAL.items():
        found += goals.check(goal, [medians[row]] if row in medians else [])
    return found


def _rows(command: Sequence) -> list[dict]:
    """What one launch printed, an object a line."""
    words = list(map(str, command))
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=RUN_LIMIT_S, env=os.environ)
    except subprocess.TimeoutExpired:
        raise UserError(f"{Path(words[0]).name} did not end within {RUN_LIMIT_S:.0f} s (it hangs).", 1) from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UserError(f"{Path(words[0]).name} failed: {said[0] if said else f'exit {done.returncode}'}", 1)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _over_launches(launches: list[list[dict]], key: str, labels: Sequence[str], values: Sequence[str]) -> list[dict]:
    rows = []
    for same in zip_equal(*launches):
        first = same[0]
        rows.append(
            {name: first[name] for name in (key, *labels) if name != "ok"}
            | {"verified": all(row.get("ok", True) for row in same), "runs": len(same)}
            | {name: comparison.spread([row[name] for row in same]) for name in values}
        )
    return rows


def _show(result: dict) -> None:
    table = Table("", "median", "lowest", "highest", box=None, pad_edge=False)
    for row in result["regions"]:
        text = FORMATS[row["unit"]].format
        table.add_row(row["name"], *(text(row["value"][which]) for which in ("median", "min", "max")))
    console.out.print(table)
    if not result["kernels"]:
        return
    table = Table("kernel", "size", "device", "host", "host / device", keys=2, box=None, pad_edge=False)
    for row in result["kernels"]:
        device, host = row["device_s"]["median"], row["host_s"]["median"]
        times = (FORMATS["s"].format(device), FORMATS["s"].format(host))
        table.add_row(row["kernel"], str(row["size"]), *times, f"{host / device:.2f}")
    console.out.print(table)
