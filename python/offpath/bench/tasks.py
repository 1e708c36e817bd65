# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench tasks`: what a task costs: an empty one alone, and how many a second, on cores and on a DPU; and what
balancing brings."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.tables import Table
from offpath.bench import balance, goals, placements, results
from offpath.bench.placements import CORES, DPU, Link
from offpath.lab import Lab
from offpath.places import asked, comparison

LIMIT_S = 600
PING_PORT = 7009

app = commands.alone()


@app.command()
def tasks_command(
    cores: Annotated[Optional[str], typer.Option(help="Cores of the service; default: those that are spare.")] = None,
    share: Annotated[bool, typer.Option(help="The service may use the program's cores.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Tasks that are timed alone.")] = 2000,
    count: Annotated[int, typer.Option(min=1, help="Tasks that are timed together.")] = 200000,
    placement: Annotated[
        str, typer.Option(help="Where they run: cores (of this host), dpu (another machine).")
    ] = CORES,
    link_rate: placements.LinkRate = None,
    link_latency: placements.LinkLatency = "0",
    labs: Annotated[
        Optional[str], typer.Option(help="Measure balancing instead, in such labs: 4x1,2x2 (nodes by ranks of each).")
    ] = None,
    mpi: Annotated[str, typer.Option(help="With --labs: openmpi, mpich or both.")] = comparison.BOTH,
    runs: asked.Runs = 3,
    steps: Annotated[int, typer.Option(min=1, help="With --labs: of each launch.")] = 100,
    milliseconds: Annotated[float, typer.Option("--ms", min=0.1, help="With --labs: of a piece that waits.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="With --labs: sweeps of a piece that computes.")] = 250,
    json_file: results.JsonFile = None,
) -> None:
    """Measure what tasks cost: the time of an empty one from its submission to its end, by testing and by waiting for
    it, and how many are done in a second while hundreds are under way. One process, no MPI.

    With --labs: four ranks of which one has three times as much to do, or is three times slower; which one changes
    every 50 steps. With balancing (OFFPATH_TASK_BALANCE) and without, in turns. *of perfect*: the time of an even
    distribution by the time with balancing. Pieces of work are waits, as all nodes of a lab share this machine's cores;
    then the same with pieces that compute, which gain nothing where ranks are more than cores.

    With --cores 2,3 worker and executor have a core each, and neither is the program's: that is what spare cores give.
    With --placement dpu they run on a DPU of the lab, and round trips of the link to it are measured, too, in turns.

    Examples:

        offpath bench tasks --cores 2,3 --json tasks.json

        offpath bench tasks --placement cores,dpu --link-latency 20us

        offpath bench tasks --labs 4x1,2x2 --json balance.json
    """
    files.writable_file(json_file, "--json")
    if labs is not None:
        pieces = {
            balance.WAITS: ["--ms", f"{milliseconds:g}"],
            balance.COMPUTES: ["--ms", "0", "--rounds", str(rounds)],
        }
        return _balance(labs, mpi, runs, pieces, ["--steps", str(steps)], json_file)
    names = [name.strip() for name in placement.split(",") if name.strip()]
    if not names or any(name not in (CORES, DPU) for name in names):
        raise UserError(f"--placement {placement} is not known for tasks. Use {CORES}, {DPU} or both.")
    link = Link(link_rate, link_latency)
    placements.check(names, False, link)
    options = ["--repeats", str(repeats), "--count", str(count)]
    measure = {CORES: lambda: _on_cores(options, cores, share), DPU: lambda: _on_dpu(options, link)}
    launches: dict[str, list[dict]] = {name: [] for name in names}
    for _, name in itertools.product(range(runs), names):
        launches[name].append(measure[name]())
    rows = [over_launches(found) for found in launches.values()]
    result = {"meta": comparison.base_meta([]) | {"runs": runs}, "rows": rows}
    result["checks"] = [one for row in rows for one in checks(row)]
    results.deliver(result, _show, json_file)


def _balance(
    labs: str, mpi: str, runs: int, pieces: Mapping[str, list[str]], options: list[str], json_file: Path | None
) -> None:
    places, kinds = balance.parse(labs), comparison.chosen_mpis(mpi)
    if not comparison.lab_is_possible():
        raise UserError("balancing is measured in a lab (a lab needs root). Run it as root.")
    rows = balance.measure(places, kinds, pieces, options, runs)
    result = {"meta": comparison.base_meta(kinds) | {"runs": runs}, "rows": rows, "checks": balance.checks(rows)}
    results.deliver(result, lambda result: balance.show(result["rows"]), json_file)


def over_launches(found: Sequence[dict]) -> dict:
    """The medians, with the least and the most; programs in which a task failed end the command."""
    row = dict(found[0])
    for name in [name for name in row if name.endswith(("_us", "_per_second"))]:
        values = [each[name] for each in found]
        row |= {name: statistics.median(values), f"{name}_least": min(values), f"{name}_most": max(values)}
    for name in [name for name in row if name.endswith("_us_min")]:
        row[name] = min(each[name] for each in found)
    return row | {"runs": len(found), "verified": True}


TITLES = {"round_trip_us": "round trip, us", "empty_task_test_us": "empty task, tested, us",
          "empty_task_wait_us": "empty task, awaited, us", "tasks_per_second": "many tasks, per second"}  # fmt: skip


def _show(result: dict) -> None:
    table = Table("where", "what", "median", "least", "most", keys=2, box=None, pad_edge=False)
    for row in result["rows"]:
        for name in (name for name in TITLES if name in row):
            values = [
                f"{row[name + part]:.{0 if name == 'tasks_per_second' else 2}f}" for part in ("", "_least", "_most")
            ]
            table.add_row(row["placement"], TITLES[name], *values)
    console.out.print(table)


def checks(row: Mapping) -> list[dict]:
    if row["placement"] == DPU:
        return goals.check("tasks_far_ratio", [row["empty_task_wait_us"] / row["round_trip_us"]])
    return [
        *goals.check("tasks_empty_us", [row["empty_task_wait_us"]]),
        *goals.check("tasks_piece_us", [1e6 / row["tasks_per_second"]]),
    ]


def _on_cores(options: Sequence[str], cores: str | None, share: bool) -> dict:
    env = os.environ | ({"OFFPATH_SERVICE_SHARE": "1"} if share else {})
    row = _measure([*_program(), *options, *(["--cores", cores] if cores else [])], env, CORES)
    return row | {"cores": cores, "shared": share}


def _on_dpu(options: Sequence[str], link: Link) -> dict:
    with Lab(1, "1gbit", dpus=1, link_rate=link.rate, link_latency=link.latency) as lab:
        (dpu,) = lab.plan.dpus
        server = lab.inside(dpu.place, [str(paths().require_tasks_program()), "--serve-pings", str(PING_PORT)])
        with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                process.stdout.readline()  # it listens
                words = [*_program(), *options, "--ping", f"{dpu.place}:{PING_PORT}"]
                env = os.environ | {"OFFPATH_DPUS": lab.dpus()}
                row = _measure(lab.inside("node1", words), env, DPU, lab.plan.state_dir)
            finally:
                process.kill()
        shared = bool({core for cores in lab.plan.node_cores for core in cores} & set(dpu.cores))
        return row | {"link_rate": link.rate, "link_latency": link.latency, "shared": shared}


def _program() -> list[str]:
    return [str(paths().require_tasks_program()), "--functions", str(paths().require_tasks_functions())]


def _measure(words: Sequence[str], env: Mapping[str, str], placement: str, where: Path | None = None) -> dict:
    with tempfile.TemporaryDirectory(dir=where) as folder:  # nodes of a lab have other temporary files
        file = Path(folder) / "row.json"
        done = subprocess.run(
            [*words, "--json", str(file)], env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if done.returncode != 0:
            raise UserError(done.stderr.strip() or "The benchmark of tasks has ended without a word.", 1)
        return json.loads(file.read_text()) | {"placement": placement}
