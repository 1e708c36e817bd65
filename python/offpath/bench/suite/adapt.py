# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench adapt`: phases in which offloading wins and loses: on the host, on the DPU, decided while running."""

from __future__ import annotations

import contextlib
import functools
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_sizes
from offpath.bench.kit import FAILED, Benchmark, Case, Page, Site, Table, options, turns
from offpath.lab import Lab
from offpath.launch import policy_table
from offpath.places import asked, comparison
from offpath.places.comparison import LabPlace, Launch, Place

HOST, DPU, AUTO = "host", "dpu", "auto"
ENVIRONMENT = {"OFFPATH_MPI_ADAPT": "on", policy_table.FILE_VARIABLE: policy_table.NO_FILE}
TITLE_OF = {HOST: "host only", DPU: "DPU only", AUTO: "automatic"}
PHASES = ("hides", "talks")
ALL = "all"
USUAL_TURNS = 4000  # of a launch, on each path: far below the usual time limit


def _of_auto(wanted: Callable[[str], bool]) -> Callable[[list[dict]], list[float]]:
    return lambda rows: [row["over_best"] for row in rows if row["peer"] == AUTO and wanted(row["phase"])]


BENCHMARK = Benchmark(
    [Table("{mpi:mpi}: all-to-all of {bytes:size} in alternating phases", [
        ("phase", "{phase}"), ("path", lambda row: TITLE_OF[row["peer"]]), ("ms a turn", "{turn_ns:ms}"),
        ("min-max", "{turn_min_ns:ms}-{turn_max_ns:ms}"), ("over the better fixed", "{over_best:.3f}"),
    ], keys=2, strong=lambda row: row["peer"] == AUTO)],
    {
        "adapt_phase_ratio": _of_auto(lambda phase: phase != ALL),
        "adapt_overall_ratio": _of_auto(lambda phase: phase == ALL),
    },
    subject=lambda row: row["mpi"],
    page=Page(
        "A policy that decides while the program runs",
        "The same program and the same cores: all on the host, all on the DPU, and decided while it runs.",
    ),
)  # fmt: skip

app = commands.alone()


@app.command()
def adapt_command(
    mpi: asked.Mpis = "both",
    nodes: Annotated[int, typer.Option(min=2, help="Nodes of the lab, with one rank each.")] = 2,
    rate: asked.Rate = "1gbit",
    dpu_slowdown: Annotated[float, typer.Option(help="How many times slower than the host a DPU is.")] = 6.0,
    size: Annotated[str, typer.Option(help="All bytes that a rank sends in one all-to-all.")] = "1M",
    turns_of_phase: Annotated[int, typer.Option("--turns", min=1, help="All-to-alls in a phase, on each path.")] = 1000,
    phases: Annotated[int, typer.Option(min=2, help="Phases, of both kinds in turns.")] = 4,
    messages: Annotated[int, typer.Option(min=1, help="Small messages in a turn without computation.")] = 1,
    runs: asked.Runs = 3,
    json_file: options.JsonFile = None,
    html_file: options.HtmlFile = None,
) -> None:
    """Compare host only, DPU only and the automatic policy on a program whose phases want different things.

    *hides* posts an all-to-all, computes and waits: the DPU moves the data meanwhile. *talks* has nothing to compute: a
    slow DPU only delays it. Both are the same collective and size, so no table can be right for both. The three take
    turns inside one launch, on communicators with different wishes, so all meet the same machine. Asked of the
    automatic policy: within 5 % of the better fixed choice in each phase, and faster than either overall.

    Examples:

        offpath bench adapt

        offpath bench adapt --mpi mpich --turns 2000 --json result.json
    """
    kinds = comparison.chosen_mpis(mpi)
    (size_bytes,) = parse_sizes(size)
    options.check_files(json_file, html_file)
    built(paths().preload_library)
    options.require_lab("A program beside DPUs that are slow on purpose is", rate)
    arguments = ["--bytes", str(size_bytes), "--turns", str(turns_of_phase), "--phases", str(phases)]
    arguments += ["--messages", str(messages)]
    cases = [Case({"mpi": kind}, lambda _: None) for kind in kinds]
    for case in cases:
        case.launch = functools.partial(_launch, case, arguments)
    patience_s = comparison.RUN_TIMEOUT_S * max(1, turns_of_phase * phases / USUAL_TURNS)
    site = Site([cases], functools.partial(_place, nodes, rate, dpu_slowdown, patience_s))
    meta = comparison.base_meta(kinds) | {"size_bytes": size_bytes, "turns": turns_of_phase, "phases": phases}
    meta |= {"messages": messages} | turns.measure([site], runs)
    meta["ranks"] = {case.labels["mpi"]: [launch.stats for launch in case.launches] for case in cases}
    rows = [row for case in cases for row in rows_of(case.labels["mpi"], size_bytes, case.launches)]
    BENCHMARK.deliver({"meta": meta, "rows": rows}, json_file, html_file)


@contextlib.contextmanager
def _place(nodes: int, rate: str, dpu_slowdown: float, patience_s: float) -> Iterator[Place]:
    with Lab(nodes=nodes, rate=rate, dpu_slowdown=dpu_slowdown) as lab:
        yield LabPlace(lab, 1, patience_s)


def _launch(case: Case, arguments: Sequence[str], where: Place) -> Launch:
    """All with the work that the first has chosen."""
    argv = [str(paths().bench_program("adapt", case.labels["mpi"])), *arguments]
    if case.launches:
        argv += ["--work-iterations", str(case.launches[0].output["work_iterations"])]
    launch = comparison.launch_for_json(where, case.labels["mpi"], argv, True, ENVIRONMENT)
    if launch.output is None:
        raise UserError(launch.problem or "", FAILED)
    return launch


def rows_of(mpi: str, size_bytes: int, launches: Sequence[Launch]) -> list[dict]:
    """One for each kind of phase and one for all phases, by path: the median over the launches of what a turn took."""
    if not launches:
        return []
    rows = []
    verified = all(each["verified"] for launch in launches for each in launch.output["phases"])
    for phase in (*PHASES, ALL):
        turns_ns = {peer: [_mean_turn_ns(launch, phase, peer) for launch in launches] for peer in TITLE_OF}
        medians = {peer: statistics.median(values) for peer, values in turns_ns.items()}
        better = min(medians[HOST], medians[DPU])
        for peer, values in turns_ns.items():
            row = {"mpi": mpi, "phase": phase, "peer": peer, "bytes": size_bytes, "turn_ns": round(medians[peer])}
            row |= {"turn_min_ns": min(values), "turn_max_ns": max(values), "over_best": medians[peer] / better}
            rows.append(row | {"runs": len(values), "verified": verified})
    return rows


def _mean_turn_ns(launch: Launch, kind: str, peer: str) -> int:
    phases = launch.output["phases"]
    return round(statistics.mean(each["turn_ns"][peer] for each in phases if kind in (ALL, each["phase"])))
