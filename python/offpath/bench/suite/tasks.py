# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench tasks`: what a task costs: an empty one alone, and how many a second, on cores and on a DPU; and what
balancing brings."""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, handover
from offpath.base.paths import paths
from offpath.bench import balance, placements
from offpath.bench.kit import Benchmark, Case, Site, Table, options, programs, rows, turns
from offpath.bench.placements import CORES, DPU, Link
from offpath.lab import Lab
from offpath.places import asked, comparison

PING_PORT = 7009
# What is measured, its title and its digits.
MEASURED = {
    "round_trip_us": ("round trip, us", 2), "empty_task_test_us": ("empty task, tested, us", 2),
    "empty_task_wait_us": ("empty task, awaited, us", 2), "tasks_per_second": ("many tasks, per second", 0),
}  # fmt: skip


def _with_spread(name: str, digits: int) -> str:
    median, least, most = (f"{{{name}{end}:.{digits}f}}" for end in ("", "_least", "_most"))
    return f"{median} ({least}-{most})"


BENCHMARK = Benchmark(
    [Table("What a task costs", [
        ("where", "{placement}"), *((title, _with_spread(name, digits)) for name, (title, digits) in MEASURED.items()),
    ], note="median of the launches (least-most)")],
    {
        "tasks_far_ratio": lambda found: [
            row["empty_task_wait_us"] / row["round_trip_us"] for row in found if row["placement"] == DPU
        ],
        "tasks_empty_us": lambda found: [row["empty_task_wait_us"] for row in found if row["placement"] == CORES],
        "tasks_piece_us": lambda found: [1e6 / row["tasks_per_second"] for row in found if row["placement"] == CORES],
    },
)  # fmt: skip

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
    json_file: options.JsonFile = None,
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
    options.check_files(json_file)
    if labs is not None:
        pieces = {
            balance.WAITS: ["--ms", f"{milliseconds:g}", "--steps", str(steps)],
            balance.COMPUTES: ["--ms", "0", "--rounds", str(rounds), "--steps", str(steps)],
        }
        places, kinds = balance.parse(labs), comparison.chosen_mpis(mpi)
        options.require_lab("Balancing is")
        return balance.BENCHMARK.deliver(balance.measure(places, kinds, pieces, runs), json_file)
    names = options.names(placement, (CORES, DPU), "a placement of tasks")
    link = Link(link_rate, link_latency)
    placements.check(names, False, link)
    argv = [*_program(), "--repeats", str(repeats), "--count", str(count)]
    launches = {CORES: functools.partial(_on_cores, argv, cores, share), DPU: functools.partial(_on_dpu, argv, link)}
    cases = [Case({"placement": name}, launches[name]) for name in names]
    meta = comparison.base_meta([]) | turns.measure([Site([cases])], runs)
    BENCHMARK.deliver({"meta": meta, "rows": [row for case in cases for row in of_case(case)]}, json_file)


def of_case(case: Case) -> list[dict]:
    """With the least and the most of the launches."""
    found = rows.of_case(case)
    for row in found:
        for name in (name for name in MEASURED if name in row):
            values = [launch[name] for launch in case.launches]
            row |= {f"{name}_least": min(values), f"{name}_most": max(values)}
    return found


def _on_cores(argv: Sequence[str], cores: str | None, share: bool, _: object) -> dict:
    env = {"OFFPATH_SERVICE_SHARE": "1"} if share else {}
    row = _measure([*argv, *(["--cores", cores] if cores else [])], env)
    return row | {"cores": cores, "shared": share}


def _on_dpu(argv: Sequence[str], link: Link, _: object) -> dict:
    with Lab(1, "1gbit", dpus=1, link_rate=link.rate, link_latency=link.latency) as lab:
        (dpu,) = lab.plan.dpus
        with _answering(lab.inside(dpu.place, [_program()[0], "--serve-pings", str(PING_PORT)])):
            words = lab.inside("node1", [*argv, "--ping", f"{dpu.place}:{PING_PORT}"])
            row = _measure(words, {"OFFPATH_DPUS": lab.dpus()}, lab.plan.state_dir)
        shared = bool({core for cores in lab.plan.node_cores for core in cores} & set(dpu.cores))
        return row | {"link_rate": link.rate, "link_latency": link.latency, "shared": shared}


@contextlib.contextmanager
def _answering(server: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # it listens
            yield
        finally:
            process.kill()


def _program() -> list[str]:
    return [str(paths().tool("offpath-bench-tasks")), "--functions", str(paths().tasks_functions)]


def _measure(words: Sequence[str], env: Mapping[str, str], where: Path | None = None) -> dict:
    """A program in which a task failed ends with an error. Nodes of a lab have other temporary files: `where`."""
    with handover.folder(where / "row.json" if where else None) as folder:
        file = folder / "row.json"
        programs.output([*words, "--json", file], env)
        return json.loads(file.read_text()) | {"verified": True}
