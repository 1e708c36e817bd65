# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench guest`: what an unrelated program feels on cores that jobs share, with and without Offpath."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_numbers
from offpath.bench import guest_launches
from offpath.bench.guest_launches import COMPUTES, ONE, OWN, SLEEPS, Outcome, Setting
from offpath.bench.kit import Benchmark, Case, Site, Table, options, turns
from offpath.bench.measuring import Peer
from offpath.launch import local
from offpath.launch.mpis import MPICH
from offpath.places import asked, comparison

MODES = (
    Peer("native"),
    Peer("default", offload=True),
    Peer("dpu", offload=True, env={"OFFPATH_POLICY": "*:dpu"}, must_offload=True),
    Peer("quiet", offload=True, env={"OFFPATH_QUIET_WAITS": "1"}),
)
# Below it nobody is late: so long the kernel lets others run first, by turns that change from launch to launch.
NOISE_MS = 40.0
START_S = 3.0  # for the estimate only


def _setting(row: dict) -> str:
    return Setting(row["mpi"], row["jobs"], row["ranks"], row["sessions"], row["stranger"]).text


def _of_ours(field: str) -> Callable[[list[dict]], list[float]]:
    return lambda rows: [row[field] for row in rows if row["mode"] != MODES[0].name and field in row]


def _rounds(mode: str) -> Callable[[list[dict]], list[float]]:
    """Beside a computation they share with it what they have, as the scheduler deals it out."""
    return lambda rows: [
        row["rounds_ratio"] for row in rows
        if row["mode"] == mode and row["stranger"] == SLEEPS and "rounds_ratio" in row
    ]  # fmt: skip


BENCHMARK = Benchmark(
    [Table("{mpi:mpi}: a stranger beside jobs", [
        ("jobs", _setting), ("mode", "{mode}"), ("late ms", "{worst_late_ms:.1f}"), ("99.9 %", "{p999_late_ms:.1f}"),
        ("> 1 s", "{gaps_over_1s_count}"), ("share", "{computation_share:.2f}"), ("rounds/s", "{rounds_per_s:.1f}"),
        ("ratio", "{rounds_ratio:.2f}"),
    ], keys=2)],
    {  # a stranger feels Offpath no more than the MPI alone, and jobs are not held up for that
        "guest_late_ratio": _of_ours("late_ratio"),
        "guest_late_ms": _of_ours("worst_late_ms"),
        "guest_default_rounds_ratio": _rounds("default"),
        "guest_dpu_rounds_ratio": _rounds("dpu"),
    },
    subject=lambda row: row["mpi"],
)  # fmt: skip

app = commands.alone()


@app.command()
def guest_command(
    mpi: asked.Mpis = "both",
    jobs: Annotated[str, typer.Option(help="Jobs beside each other.")] = "1,3",
    ranks: Annotated[str, typer.Option(help="Ranks of each job.")] = "4",
    sessions: Annotated[str, typer.Option(help="Of the jobs: one for all, or each its own.")] = "own,one",
    strangers: Annotated[str, typer.Option(help="What runs beside them: sleeps, computes.")] = "sleeps,computes",
    modes: Annotated[
        str, typer.Option(help="Of native, default, dpu and quiet; native always runs.")
    ] = "native,default,dpu",
    seconds: Annotated[float, typer.Option(min=0.1, help="How long the jobs work in each launch.")] = 5.0,
    threads: Annotated[int, typer.Option(min=1, max=16, help="Threads of a rank that call MPI.")] = 1,
    runs: asked.Runs = 3,
    json_file: options.JsonFile = None,
) -> None:
    """Measure what an unrelated program feels beside jobs with more ranks than cores, without and with Offpath.

    On each core an unrelated program asks for 10 ms of sleep again and again, and notes by how much it woke late, from
    before the jobs start until after they have ended; *computes*: another one computes there while they work. Each is
    in a session of its own, by which the scheduler may deal out turns. So are the jobs, or all of them are in one (with
    Open MPI: MPICH's launcher gives every rank its own). The jobs do rounds of nonblocking and blocking collectives and
    messages, for a fixed time, on shared cores, and check what they receive. Modes: *native*; *default*, Offpath as
    installed; *dpu*, everything that can be is offloaded; *quiet*, `offpath run --quiet-waits`. Reported: the worst
    lateness, how often it was over 1 s, what part of a core the computation kept, and rounds of all jobs per second,
    beside native.

    Examples:

        offpath bench guest

        offpath bench guest --mpi openmpi --jobs 1,2,4 --ranks 2,4,16 --strangers sleeps --json guest.json

        offpath bench guest --jobs 3 --ranks 4 --sessions own --threads 3 --seconds 40
    """
    kinds = comparison.chosen_mpis(mpi)
    wanted = options.names(modes, [mode.name for mode in MODES], "a mode")
    chosen = [mode for mode in MODES if not mode.offload or mode.name in wanted]
    settings = chosen_settings(
        kinds, parse_numbers(jobs, "--jobs", most=1024), parse_numbers(ranks, "--ranks", most=1024),
        options.names(sessions, (OWN, ONE), "a kind of sessions"),
        options.names(strangers, (SLEEPS, COMPUTES), "a stranger"),
    )  # fmt: skip
    options.check_files(json_file)
    built(paths().preload_library)
    paths().tool("offpath-stranger")
    launch, load = guest_launches.launch_crowd, ["--seconds", str(seconds), "--threads", str(threads)]
    rounds = [
        [Case({**each.labels, "mode": mode.name}, functools.partial(launch, each, mode, load, seconds))
         for mode in chosen]
        for each in settings
    ]  # fmt: skip
    meta = comparison.base_meta(kinds) | {"cores": local.available_cores(), "seconds": seconds, "threads": threads}
    alone = guest_launches.computation_alone()
    about = runs * len(settings) * len(chosen) * (seconds + START_S)
    meta |= turns.measure([Site(rounds)], runs, about) | {"noise_ms": NOISE_MS}
    BENCHMARK.deliver({"meta": meta, "rows": rows_of((case for each in rounds for case in each), alone)}, json_file)


def chosen_settings(
    kinds: Sequence[str], jobs: Sequence[int], ranks: Sequence[int], sessions: Sequence[str], strangers: Sequence[str]
) -> list[Setting]:
    """One job is in a session of its own, whatever is wished for several; of MPICH every rank is."""
    settings = (
        Setting(kind, job_count, rank_count, session if job_count > 1 and kind != MPICH else OWN, stranger)
        for kind, stranger, job_count, rank_count, session in itertools.product(kinds, strangers, jobs, ranks, sessions)
    )
    return list(dict.fromkeys(settings))


def rows_of(cases: Iterable[Case], alone: Sequence[float]) -> list[dict]:
    """One for each setting and mode of which a launch has delivered; `alone`: see computation_alone()."""
    rows: list[dict] = []
    for case in (case for case in cases if case.launches):
        row = {**case.labels, **_row(case.launches, alone)}
        native = row if row["mode"] == MODES[0].name else next(
            (each for each in rows if each["mode"] == MODES[0].name and _same(each, row)), None
        )  # fmt: skip
        if native is not None:
            row["late_ratio"] = row["worst_late_ms"] / max(native["worst_late_ms"], NOISE_MS)
            row["rounds_ratio"] = row["rounds_per_s"] / native["rounds_per_s"]
        rows.append(row)
    return rows


def _same(one: dict, other: dict) -> bool:
    return all(one[name] == other[name] for name in ("mpi", "jobs", "ranks", "sessions", "stranger"))


def _row(launches: Sequence[Outcome], alone: Sequence[float]) -> dict:
    rounds = [sum(job["rounds_count"] / (job["took_ns"] / 1e9) for job in each.jobs) for each in launches]
    sleepers = [sleeper for each in launches for sleeper in each.sleepers]
    row: dict = {f"{name}_late_ms": max(sleeper[f"{name}_late_ns"] for sleeper in sleepers) / 1e6
                 for name in ("worst", "p999")}  # fmt: skip
    for name in ("gaps_over_100ms_count", "gaps_over_1s_count", "sleeps_count"):
        row[name] = sum(sleeper[name] for sleeper in sleepers)
    shares = [
        statistics.mean(guest_launches.rate(one) / free for one, free in zip(each.computations, alone))
        for each in launches
        if each.computations
    ]
    row["computation_share"] = statistics.median(shares) if shares else None
    row |= {"rounds_per_s": statistics.median(rounds), "rounds_min_per_s": min(rounds), "rounds_max_per_s": max(rounds)}
    return row | {"runs": len(launches), "verified": all(job["verified"] for each in launches for job in each.jobs)}
