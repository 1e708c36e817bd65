# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench minimd`: molecular dynamics on ranks alone, on all cores, and with forces on a DPU beside ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Annotated

import typer

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.tables import Table
from offpath.bench import goals, measuring, minimd_settings, results
from offpath.bench.minimd_settings import BESIDE, HOST, HYBRID, OFF_PATH, OPENMP, TASKS, Case, Setting
from offpath.lab import Lab
from offpath.launch.mpis import OPENMPI
from offpath.places import asked, comparison
from offpath.plan.minimd import Dpu, Host, knee, predict

app = commands.alone()


@app.command()
def minimd_command(
    cells: Annotated[str, typer.Option(help="Cells of the lattice in each direction, four atoms in each.")] = "20",
    every: Annotated[
        str, typer.Option(help="Steps between rebuilds; EVERY:SKIN for another skin, EVERY:SKIN:off without guard.")
    ] = "2,3,5,10:0.5,20:0.3:off",
    slower: Annotated[str, typer.Option(help="DPUs so many times slower, emulated by computing so often.")] = "1",
    threads: Annotated[str, typer.Option(help="Threads of the DPU.")] = "1",
    sides: Annotated[str, typer.Option(help="How forces get there: openmp, tasks or both.")] = "openmp,tasks",
    ranks: Annotated[int, typer.Option(min=1, help="Ranks (in a lab: per node); the other cores are the DPU's.")] = 1,
    lab: Annotated[int, typer.Option(min=0, help="Nodes of a lab to measure in; 0: on this machine.")] = 0,
    rate: asked.Rate = "1gbit",
    mpi: Annotated[str, typer.Option(help="openmpi or mpich.")] = OPENMPI,
    steps: Annotated[int, typer.Option(min=1, help="Timed steps of each launch, at least.")] = 40,
    runs: asked.Runs = 3,
    json_file: results.JsonFile = None,
) -> None:
    """Time of a step of molecular dynamics (apps/minimd) with its forces beside the rebuilding of its lists.

    *host*: ranks alone, the DPU's cores idle. *all cores*: a rank on each core, no DPU. *relaxed*: forces by the old
    lists, on the rank itself. *offpath*: those forces on the DPU while the host rebuilds. *hybrid*: the DPU has a share
    of the other steps, too. Gain: the host's time / this one. *predicted* is made of the host's own times and of what
    the first case has shown of the DPU; that case has no prediction. *guard*: steps on which lists had to be rebuilt
    before a pair was missed; there the schedule is the host's.

    Examples:

        offpath bench minimd

        offpath bench minimd --cells 10,20,30 --every 5 --slower 1,2,4 --json result.json

        offpath bench minimd --lab 2 --every 5
    """
    files.writable_file(json_file, "--json")
    (kind,) = comparison.chosen_mpis(mpi) if mpi != comparison.BOTH else [OPENMPI]
    factors, counts = _whole(slower, "--slower"), _whole(threads, "--threads")
    kinds = measuring.parse_names(sides, (OPENMP, TASKS), "another side")
    cases = [_case(count, word) for count in _whole(cells, "--cells") for word in every.split(",")]
    place = Lab(nodes=lab, rate=rate) if lab else contextlib.nullcontext()
    chosen = [each for case in cases for each in minimd_settings.of_case(case, ranks, kinds, factors, counts, lab)]
    with place as where:
        for case in cases:
            for _ in range(runs):
                for each in chosen:
                    if each.case == case:
                        minimd_settings.launch(each, kind, steps, where)
    rows = _rows(chosen)
    emulated = {"place": "lab", "hardware": "emulated", "nodes": lab, "rate": rate}
    meta = comparison.base_meta([kind]) | (emulated if lab else {"place": "loopback"})
    meta |= {"steps": steps, "runs": runs, "ranks": ranks, "failures": []}
    results.deliver({"meta": meta, "rows": rows, "checks": checks(rows)}, _show, json_file)


def checks(rows: Sequence[dict]) -> list[dict]:
    """Of each case the faster other side, as fast as it is (not emulated slower), and every prediction."""
    best: dict[tuple, float] = {}
    for row in rows:
        if row["variant"] in BESIDE and row["dpu_slower"] == 1:
            case = (row["atoms"], row["every"], row["skin"])
            best[case] = max(best.get(case, 0.0), row["gain"])
    errors = [abs(row["error"]) for row in rows if row.get("error") is not None]
    return goals.check("minimd_gain_ratio", best.values()) + goals.check("minimd_error_ratio", errors)


def _rows(chosen: Sequence[Setting]) -> list[dict]:
    """With gains, and predictions for all but the first case."""
    dpus = {side: _dpu([each for each in chosen if each.case == chosen[0].case], side) for side in (OPENMP, TASKS)}
    rows = []
    for each in chosen:
        alone = next(other for other in chosen if other.case == each.case and other.variant == HOST)
        row = each.row()
        row["gain"] = alone.row()["step_ns"] / row["step_ns"]
        host = Host.of(alone.typical())
        calibrated = each.case == chosen[0].case and each.slower == each.threads == 1
        dpu = dpus[each.side]
        if dpu and each.variant in BESIDE and not calibrated and not row["guard_hits"]:
            mine = dpu.with_speed(each.threads, each.slower)
            found = predict(host, mine, each.case.every)
            seconds = found.hybrid_s if each.variant == HYBRID else found.off_path_s
            row["predicted_ns"] = round(1e9 * seconds)
            row["error"] = row["predicted_ns"] / row["step_ns"] - 1
            row["knee_threads"] = knee(host, mine)
        rows.append(row)
    return rows


def _dpu(first: Sequence[Setting], side: str) -> Dpu | None:
    """What the first case shows of the DPU; None where it shows nothing."""
    plain = [each for each in first if each.slower == each.threads == 1 and each.side in (side, OPENMP)]
    by_variant = {each.variant: each for each in plain if each.variant not in BESIDE or each.side == side}
    if not {OFF_PATH, HYBRID} <= by_variant.keys() or not by_variant[OFF_PATH].typical()["relaxed"]:
        return None
    known = Host.of(by_variant[HOST].typical())
    return Dpu.of(by_variant[OFF_PATH].typical(), known, by_variant[HYBRID].typical())


def _show(result: dict) -> None:
    titles = (
        "atoms",
        "every",
        "skin",
        "variant",
        "ranks",
        "slower",
        "ms",
        "min-max",
        "gain",
        "predicted",
        "error",
        "guard",
    )
    table = Table(*titles, box=None, pad_edge=False)
    for row in result["rows"]:
        foreseen = [f"{row['predicted_ns'] / 1e6:.3f}", f"{row['error']:+.1%}"] if "error" in row else ["", ""]
        table.add_row(
            str(row["atoms"]), str(row["every"]), f"{row['skin']:g}", _title(row), str(row["ranks"]),
            f"{row['dpu_slower']}x" if row["variant"] in BESIDE else "", f"{row['step_ns'] / 1e6:.3f}",
            f"{row['step_min_ns'] / 1e6:.2f}-{row['step_max_ns'] / 1e6:.2f}",
            f"{row['gain']:.3f}", *foreseen, str(row["guard_hits"]) if row["guard"] else "off",
        )  # fmt: skip
    console.out.print(table)


def _title(row: dict) -> str:
    return f"{row['variant']} {row['side']}" if row["side"] else row["variant"]


def _case(cells: int, word: str) -> Case:
    period, _, rest = word.partition(":")
    skin, _, guard = rest.partition(":")
    try:
        case = Case(cells, int(period), float(skin or 0.3), guard != "off")
    except ValueError:
        case = Case(cells, 0, 0, True)
    if case.every < 1 or not 0 <= case.skin < 10 or guard not in ("", "off"):
        raise UserError(f"--every '{word}' is not usable. Write it like 5, 10:0.5 or 20:0.3:off")
    return case


def _whole(text: str, option: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise UserError(f"{option} '{text}' is no list of whole numbers above 0. Give for example 1,2")
    return numbers
