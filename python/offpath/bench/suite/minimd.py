# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench minimd`: molecular dynamics on ranks alone, on all cores, and with forces on a DPU beside ranks."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.sizes import parse_numbers
from offpath.bench import minimd_settings
from offpath.bench.kit import Benchmark, Case, Site, Table, options, turns
from offpath.bench.minimd_settings import BESIDE, HOST, HYBRID, OFF_PATH, OPENMP, TASKS, Setting, System, typical
from offpath.launch.local import available_cores
from offpath.launch.mpis import OPENMPI
from offpath.places import asked, comparison
from offpath.places.comparison import LoopbackPlace, Place
from offpath.plan.minimd import Dpu, Host, finite, knee, predict


def _gains(rows: Sequence[dict]) -> list[float]:
    """Of each system the faster other side, as fast as it is (not emulated slower)."""
    best: dict[tuple, float] = {}
    for row in rows:
        if row["variant"] in BESIDE and row["dpu_slower"] == 1:
            system = (row["atoms"], row["every"], row["skin"])
            best[system] = max(best.get(system, 0.0), row["gain"])
    return list(best.values())


BENCHMARK = Benchmark(
    [Table("A step of molecular dynamics", [
        ("atoms", "{atoms}"), ("every", "{every}"), ("skin", "{skin:g}"),
        ("variant", lambda row: f"{row['variant']} {row['side'] or ''}"), ("ranks", "{ranks}"),
        ("slower", lambda row: f"{row['dpu_slower']}x" if row["variant"] in BESIDE else ""), ("ms", "{step_ns:ms}"),
        ("min-max", "{step_min_ns:ms}-{step_max_ns:ms}"), ("gain", "{gain:.3f}"), ("predicted", "{predicted_ns:ms}"),
        ("error", "{error:+.1%}"), ("guard", lambda row: str(row["guard_hits"]) if row["guard"] else "off"),
    ], keys=4)],
    {
        "minimd_gain_ratio": _gains,
        "minimd_error_ratio": lambda rows: [abs(row["error"]) for row in rows if row.get("error") is not None],
    },
)  # fmt: skip

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
    lab: asked.LabNodes = 0,
    rate: asked.Rate = "1gbit",
    mpi: asked.OneMpi = OPENMPI,
    steps: Annotated[int, typer.Option(min=1, help="Timed steps of each launch, at least.")] = 40,
    runs: asked.Runs = 3,
    json_file: options.JsonFile = None,
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
    options.check_files(json_file)
    if lab:
        options.require_lab("Several nodes are", rate)
    kind = options.one_mpi(mpi, OPENMPI)
    factors, counts = parse_numbers(slower, "--slower"), parse_numbers(threads, "--threads")
    kinds = options.names(sides, (OPENMP, TASKS), "another side")
    systems = [_system(count, word) for count in parse_numbers(cells, "--cells") for word in every.split(",")]
    chosen = [
        [(each, minimd_settings.case_of(each, kind, steps))
         for each in minimd_settings.of_system(system, ranks, kinds, factors, counts, lab)]
        for system in systems
    ]  # fmt: skip
    site = Site([[case for _, case in each] for each in chosen], functools.partial(_places, ranks, lab, rate))
    meta = comparison.base_meta([kind]) | turns.measure([site], runs)
    meta |= {"place": "lab", "hardware": "emulated", "nodes": lab, "rate": rate} if lab else {"place": "loopback"}
    rows = [row for of_system in chosen for row in _rows(of_system, chosen[0])]
    BENCHMARK.deliver({"meta": meta | {"steps": steps, "ranks": ranks}, "rows": rows}, json_file)


@contextlib.contextmanager
def _places(ranks: int, nodes: int, rate: str) -> Iterator[Mapping[int, Place]]:
    """By how many ranks there are in all."""
    if nodes:
        with comparison.place(nodes, ranks, rate, False) as where:
            yield {ranks * nodes: where}
    else:
        yield {count: LoopbackPlace(count) for count in (ranks, len(available_cores()))}


Launched = Sequence[tuple[Setting, Case]]


def _rows(launched: Launched, first: Launched) -> Iterator[dict]:
    """Of one system, with gains; and predictions for all but the first system. Nothing where the host alone failed."""
    dpus = {side: _dpu(first, side) for side in (OPENMP, TASKS)}
    alone = next(case for setting, case in launched if setting.variant == HOST)
    for setting, case in launched if alone.launches else ():
        if not case.launches:
            continue
        row = minimd_settings.row(case)
        row["gain"] = minimd_settings.row(alone)["step_ns"] / row["step_ns"]
        host = Host.of(typical(alone.launches))
        calibrated = launched is first and setting.slower == setting.threads == 1
        dpu = dpus[setting.side]
        if dpu and setting.variant in BESIDE and not calibrated and not row["guard_hits"]:
            mine = dpu.with_speed(setting.threads, setting.slower)
            found = predict(host, mine, setting.system.every)
            seconds = found.hybrid_s if setting.variant == HYBRID else found.off_path_s
            row["predicted_ns"] = round(1e9 * seconds)
            row["error"] = row["predicted_ns"] / row["step_ns"] - 1
            row["knee_threads"] = finite(knee(host, mine))
        yield row


def _dpu(first: Launched, side: str) -> Dpu | None:
    """What the first system shows of the DPU; None where it shows nothing."""
    plain = [(setting, case) for setting, case in first if setting.slower == setting.threads == 1 and case.launches]
    shown = {
        setting.variant: typical(case.launches)
        for setting, case in plain
        if setting.side == (side if setting.variant in BESIDE else OPENMP)
    }
    if not {HOST, OFF_PATH, HYBRID} <= shown.keys() or not shown[OFF_PATH]["relaxed"]:
        return None
    return Dpu.of(shown[OFF_PATH], Host.of(shown[HOST]), shown[HYBRID])


def _system(cells: int, word: str) -> System:
    period, _, rest = word.partition(":")
    skin, _, guard = rest.partition(":")
    try:
        system = System(cells, int(period), float(skin or 0.3), guard != "off")
    except ValueError:
        system = System(cells, 0, 0, True)
    if system.every < 1 or not 0 <= system.skin < 10 or guard not in ("", "off"):
        raise UserError(f"--every '{word}' is not usable. Write it like 5, 10:0.5 or 20:0.3:off")
    return system
