# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench adapt`: phases in which offloading wins and loses: on the host, on the DPU, decided while running."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich import box

from offpath.base import commands, console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import ms_text, parse_sizes, size_text
from offpath.base.tables import Table
from offpath.bench import goals, results
from offpath.lab import Lab
from offpath.launch import policy_table
from offpath.launch.mpis import TITLES
from offpath.pages import report
from offpath.places import asked, comparison
from offpath.places.comparison import Launch, Place

HOST, DPU, AUTO = "host", "dpu", "auto"
ENVIRONMENT = {"OFFPATH_MPI_ADAPT": "on", policy_table.FILE_VARIABLE: policy_table.NO_FILE}
TITLE_OF = {HOST: "host only", DPU: "DPU only", AUTO: "automatic"}
PHASES = ("hides", "talks")
USUAL_TURNS = 4000  # of a launch, on each path: far below the usual time limit

app = commands.alone()


@app.command()
def adapt_command(
    mpi: asked.Mpis = "both",
    nodes: Annotated[int, typer.Option(min=2, help="Nodes of the lab, with one rank each.")] = 2,
    rate: asked.Rate = "1gbit",
    dpu_slowdown: Annotated[float, typer.Option(help="How many times slower than the host a DPU is.")] = 6.0,
    size: Annotated[str, typer.Option(help="All bytes that a rank sends in one all-to-all.")] = "1M",
    turns: Annotated[int, typer.Option(min=1, help="All-to-alls in a phase, on each path.")] = 1000,
    phases: Annotated[int, typer.Option(min=2, help="Phases, of both kinds in turns.")] = 4,
    messages: Annotated[int, typer.Option(min=1, help="Small messages in a turn without computation.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="Launches.")] = 3,
    json_file: results.JsonFile = None,
    html_file: Annotated[Optional[Path], typer.Option("--html", help="Write a page there.")] = None,
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
    results.check_files(json_file, html_file)
    paths().require_preload_library()
    if not comparison.lab_is_possible():
        raise UserError("this needs a lab, whose DPUs are slow on purpose (a lab needs root). Run it as root.")
    arguments = [
        "--bytes", str(size_bytes), "--turns", str(turns), "--phases", str(phases), "--messages", str(messages),
    ]  # fmt: skip
    meta = comparison.base_meta(kinds) | {"size_bytes": size_bytes, "turns": turns, "phases": phases}
    meta |= {"messages": messages, "runs": runs, "failures": [], "complete": True}
    meta["ranks"] = {}
    rows: list[dict] = []
    with Lab(nodes=nodes, rate=rate, dpu_slowdown=dpu_slowdown) as lab:
        where = comparison.LabPlace(lab, 1, comparison.RUN_TIMEOUT_S * max(1, turns * phases / USUAL_TURNS))
        meta |= where.meta
        for kind in kinds:
            launches = launch_all(where, kind, arguments, runs, meta["failures"])
            rows += rows_of(kind, size_bytes, launches)
            meta["ranks"][kind] = [launch.stats for launch in launches]
    results.deliver({"meta": meta, "rows": rows, "checks": checks(rows)}, _show, json_file, _page, html_file)


def launch_all(where: Place, mpi: str, arguments: list[str], runs: int, failures: list[dict]) -> list[Launch]:
    """Those that delivered, all with the work that the first has chosen."""
    done: list[Launch] = []
    work: list[str] = []
    for run in range(runs):
        console.note(f"{TITLES[mpi]}, run {run + 1} of {runs}")
        argv = [str(paths().bench_program("adapt", mpi)), *arguments, *work]
        launch = comparison.launch_for_json(where, mpi, argv, True, ENVIRONMENT)
        if launch.output is None:
            failures.append({"mpi": mpi, "phase": "all", "peer": "all", "problem": launch.problem})
            continue
        work = work or ["--work-iterations", str(launch.output["work_iterations"])]
        done.append(launch)
    return done


def rows_of(mpi: str, size_bytes: int, launches: Sequence[Launch]) -> list[dict]:
    """One for each kind of phase and one for all phases, by path: the median over the launches of what a turn took."""
    if not launches:
        return []
    rows = []
    verified = all(each["verified"] for launch in launches for each in launch.output["phases"])
    for phase in (*PHASES, "all"):
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
    return round(statistics.mean(each["turn_ns"][peer] for each in phases if kind in ("all", each["phase"])))


def checks(rows: Sequence[dict]) -> list[dict]:
    """What is asked of the automatic policy, with each MPI."""
    found = []
    for mpi in dict.fromkeys(row["mpi"] for row in rows):
        mine = [row for row in rows if row["mpi"] == mpi and row["peer"] == AUTO and row["verified"]]
        found += goals.check("adapt_phase_ratio", (row["over_best"] for row in mine if row["phase"] != "all"), mpi)
        found += goals.check("adapt_overall_ratio", (row["over_best"] for row in mine if row["phase"] == "all"), mpi)
    return found


HEADER = ("phase", "path", "ms a turn", "min-max", "over the better fixed")


def _cells(row: dict) -> list[str]:
    spread = f"{ms_text(row['turn_min_ns'])}-{ms_text(row['turn_max_ns'])}"
    over = "-" if row["over_best"] is None else f"{row['over_best']:.3f}"
    return [row["phase"], TITLE_OF[row["peer"]], ms_text(row["turn_ns"]), spread, over]


def _show(result: dict) -> None:
    for kind in result["meta"]["mpi_versions"]:
        rows = [row for row in result["rows"] if row["mpi"] == kind]
        title = f"{TITLES[kind]}: all-to-all of {size_text(result['meta']['size_bytes'])} in alternating phases"
        table = Table(*HEADER, title=title, title_justify="left", box=box.SIMPLE_HEAD)
        for row in rows:
            own = row["peer"] == AUTO
            table.add_row(*_cells(row), style="bold" if own else "", end_section=own)
        console.out.print(table)
    results.show_failures(result["meta"], "phase")


def _page(result: dict) -> str:
    meta = result["meta"]
    sections = [
        report.card(
            f"{TITLES[kind]} {meta['mpi_versions'][kind]}",
            report.table(HEADER, [_cells(row) for row in result["rows"] if row["mpi"] == kind]),
        )
        for kind in meta["mpi_versions"]
    ]
    facts = {name: value for name, value in meta.items() if name != "ranks"}
    sections.append(results.conditions_card(facts, "phase"))
    lead = "The same program and the same cores: all on the host, all on the DPU, and decided while it runs."
    return report.page("A policy that decides while the program runs", lead, sections)
