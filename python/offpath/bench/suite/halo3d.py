# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench halo3d`: a stencil (apps/halo3d) with one or several sweeps a message; beside it the planner."""

from __future__ import annotations

import functools
import re
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, handover
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_numbers
from offpath.bench.kit import FAILED, Benchmark, Case, Site, Table, options, turns
from offpath.bench.suite.pt2pt import DEFAULT_POLICY
from offpath.lab.plan import parse_latency
from offpath.launch.mpis import OPENMPI
from offpath.places import asked, comparison
from offpath.places.comparison import Place
from offpath.plan import calibrate, predict, profile_command
from offpath.plan import machine as machines
from offpath.trace import profile

SEVERAL = "several"
BENCHMARK = Benchmark([
    Table("{mpi:mpi}: a sweep of {points}^3 points, {variables} variables, ms", [
        ("sweeps a message", "{tiles}"), ("host", "{host_ms:.2f}"), ("waited", "{host_waited_ms:.2f}"),
        ("Offpath", "{offpath_ms:.2f}"), ("waited", "{offpath_waited_ms:.2f}"), ("predicted", "{predicted_ms:.2f}"),
        ("error", "{error:+.0%}"), ("gain", "{gain:.2f}"), ("over one sweep", "{tile_gain:.2f}"),
    ]),
], {
    "halo3d_gain_ratio": lambda rows: [row["gain"] for row in rows],
    "halo3d_error_ratio": lambda rows: [abs(row["error"]) for row in rows],
}, subject=lambda row: row["mpi"])  # fmt: skip

app = commands.alone()


@app.command()
def halo3d_command(
    mpi: asked.OneMpi = OPENMPI,
    nodes: Annotated[int, typer.Option(min=2, help="Nodes of the lab.")] = 2,
    ppn: asked.Ppn = 1,
    rate: asked.Rate = "500mbit",
    latency: Annotated[str, typer.Option(help="What packets take from node to node besides, like 1ms.")] = "0",
    tiles: Annotated[str, typer.Option(help="Sweeps a message.")] = "1,2,4",
    points: Annotated[int, typer.Option(min=3, help="Of the cube in each direction.")] = 192,
    variables: Annotated[int, typer.Option(min=1, help="That are solved for at a time.")] = 8,
    sweeps: Annotated[int, typer.Option(min=1, help="Of each launch.")] = 20,
    policy: Annotated[str, typer.Option(help="What goes to the DPU.")] = DEFAULT_POLICY,
    machine_file: Annotated[Optional[Path], typer.Option("--machine", metavar="FILE", help="Do not calibrate.")] = None,
    runs: asked.Runs = 3,
    json_file: options.JsonFile = None,
) -> None:
    """Time of a sweep of Jacobi's method in 3-D (apps/halo3d) without and with Offpath, in a lab, with time tiles.

    A message of several sweeps has as many layers; points near the edges are computed by both ranks. *predicted*: what
    the planner makes of the launches without Offpath, which are profiled, before any other is looked at. Gain: host /
    Offpath, with the same tiles; *over one sweep*: Offpath with one sweep a message / with these. All results must have
    the same bits.

    Examples:

        offpath bench halo3d --json halo3d.json

        offpath bench halo3d --points 64 --latency 1ms --tiles 1,2,4,8 --machine machine.json
    """
    options.require_lab("Messages between nodes are", rate)
    parse_latency(latency)
    options.check_files(json_file)
    built(paths().preload_library)
    kind, depths = options.one_mpi(mpi, OPENMPI), parse_numbers(tiles, "--tiles")
    if machine_file:
        machine = machines.load(machine_file)
    else:
        with comparison.place(nodes, 1, rate, False, latency) as where:
            machine = calibrate.calibrate(where, kind, calibrate.REPEATS)
    size = ["--points", str(points), "--variables", str(variables), "--sweeps", str(sweeps)]
    program = [str(paths().app("halo3d", kind)), *size]
    pairs = [
        [
            Case({"mpi": kind, "tiles": depth, "path": path}, functools.partial(launch, kind, argv, policy))
            for path, launch in (("host", _record), ("offpath", _run))
        ]
        for depth in depths
        for argv in [[*program, "--tiles", str(depth)]]
    ]
    meta = comparison.base_meta([kind]) | {"latency": latency, "sweeps": sweeps} | comparison.policy_meta(policy)
    meta |= turns.measure([Site(pairs, lambda: comparison.place(nodes, ppn, rate, False, latency))], runs)
    about = {"mpi": kind, "points": points, "variables": variables}
    made = [(depth, *pair) for depth, pair in zip(depths, pairs) if all(case.launches for case in pair)]
    rows = [{**about, "tiles": depth, **_row(host, ours, machine, policy, sweeps)} for depth, host, ours in made]
    for row in rows:
        row["tile_gain"] = rows[0]["offpath_ms"] / row["offpath_ms"] if rows[0]["tiles"] == 1 else None
        row["verified"] = row["bits"] == rows[0]["bits"] != SEVERAL
    BENCHMARK.deliver({"meta": meta, "rows": rows}, json_file)


@dataclass(frozen=True)
class Sweeps:
    """What a launch says of itself; its profile, if it was recorded."""

    sweep_ms: float
    waited_ms: float
    bits: str
    recorded: profile.Profile | None = None


def _run(mpi: str, argv: list[str], policy: str, where: Place) -> Sweeps:
    return _launch(mpi, argv, where, True, {"OFFPATH_POLICY": policy})


def _record(mpi: str, argv: list[str], policy: str, where: Place) -> Sweeps:
    with handover.folder() as folder:
        prefix, merged = folder / "rank", folder / "profile.jsonl"
        found = _launch(mpi, argv, where, False, profile_command.variables(prefix))
        return Sweeps(found.sweep_ms, found.waited_ms, found.bits, profile_command.merge(prefix, merged))


def _launch(mpi: str, argv: list[str], where: Place, offload: bool, env: dict[str, str]) -> Sweeps:
    result = where.run(mpi, argv, offload, env)
    said = dict(re.findall(r"^(\w+):? (\S+)$", result.stdout or "", re.MULTILINE))
    if result.returncode != 0 or said.get("verified") != "yes":
        words = comparison.last_words(result.said, "(halo3d|offpath):")
        raise UserError(f"halo3d failed ({words}; exit {result.exit_status}).", FAILED)
    return Sweeps(float(said["sweep_ms"]), float(said["waited_ms"]), said["bits"])


def _row(host: Case, ours: Case, machine: dict, policy: str, sweeps: int) -> dict:
    typical = sorted(host.launches, key=lambda found: found.sweep_ms)[len(host.launches) // 2]
    told = predict.predict(typical.recorded, machine, typical.recorded.node_of, policy=(policy,))
    predicted_ms = typical.sweep_ms - (told.alone - told.offloaded) / 1e6 / sweeps
    everything = [*host.launches, *ours.launches]
    row = {"bits": everything[0].bits if len({each.bits for each in everything}) == 1 else SEVERAL}
    for name, case in (("host", host), ("offpath", ours)):
        row[f"{name}_ms"] = statistics.median(each.sweep_ms for each in case.launches)
        row[f"{name}_waited_ms"] = statistics.median(each.waited_ms for each in case.launches)
    row |= {"predicted_ms": predicted_ms, "error": predicted_ms / row["offpath_ms"] - 1}
    return row | {"gain": row["host_ms"] / row["offpath_ms"], "runs": min(len(host.launches), len(ours.launches))}
