# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench guest`: what an unrelated program feels on cores that jobs share, with and without Offpath."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box

from offpath.base import commands, console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.tables import Table
from offpath.bench import goals, measuring, results
from offpath.bench.crowd import ended_by_signals
from offpath.bench.guest_launches import (
    COMPUTES,
    ONE,
    OWN,
    SLEEPS,
    Outcome,
    Setting,
    computation_alone,
    launch_crowd,
    rate,
)
from offpath.bench.measuring import Peer
from offpath.launch import local
from offpath.launch.mpis import MPICH, TITLES
from offpath.places import asked, comparison

MODES = (
    Peer("native", "native"),
    Peer("default", "Offpath", offload=True),
    Peer("dpu", "Offpath *:dpu", offload=True, env={"OFFPATH_POLICY": "*:dpu"}, must_offload=True),
)
# Below it nobody is late: so long the kernel lets others run first, by turns that change from launch to launch.
NOISE_MS = 40.0
START_S = 3.0  # for the estimate only

app = commands.alone()


@app.command()
def guest_command(
    mpi: asked.Mpis = "both",
    jobs: Annotated[str, typer.Option(help="Jobs beside each other.")] = "1,3",
    ranks: Annotated[str, typer.Option(help="Ranks of each job.")] = "4",
    sessions: Annotated[str, typer.Option(help="Of the jobs: one for all, or each its own.")] = "own,one",
    strangers: Annotated[str, typer.Option(help="What runs beside them: sleeps, computes.")] = "sleeps,computes",
    modes: Annotated[str, typer.Option(help="Of native, default and dpu; native always runs.")] = "native,default,dpu",
    seconds: Annotated[float, typer.Option(min=0.1, help="How long the jobs work in each launch.")] = 5.0,
    threads: Annotated[int, typer.Option(min=1, max=16, help="Threads of a rank that call MPI.")] = 1,
    runs: asked.Runs = 3,
    json_file: results.JsonFile = None,
) -> None:
    """Measure what an unrelated program feels beside jobs with more ranks than cores, without and with Offpath.

    On each core an unrelated program asks for 10 ms of sleep again and again, and notes by how much it woke late, from
    before the jobs start until after they have ended; *computes*: another one computes there while they work. Each is
    in a session of its own, by which the scheduler may deal out turns. So are the jobs, or all of them are in one (with
    Open MPI: MPICH's launcher gives every rank its own). The jobs do rounds of nonblocking and blocking collectives and
    messages, for a fixed time, on shared cores, and check what they receive. Modes: *native*; *default*, Offpath as
    installed; *dpu*, everything that can be is offloaded. Reported: the worst lateness, how often it was over 1 s, what
    part of a core the computation kept, and rounds of all jobs per second, beside native.

    Examples:

        offpath bench guest

        offpath bench guest --mpi openmpi --jobs 1,2,4 --ranks 2,4,16 --strangers sleeps --json guest.json

        offpath bench guest --jobs 3 --ranks 4 --sessions own --threads 3 --seconds 40
    """
    kinds = comparison.chosen_mpis(mpi)
    wanted = measuring.parse_names(modes, [mode.name for mode in MODES], "a mode")
    chosen = [mode for mode in MODES if not mode.offload or mode.name in wanted]
    settings = chosen_settings(
        kinds, _counts(jobs, "--jobs"), _counts(ranks, "--ranks"),
        measuring.parse_names(sessions, (OWN, ONE), "a kind of sessions"),
        measuring.parse_names(strangers, (SLEEPS, COMPUTES), "a stranger"),
    )  # fmt: skip
    results.check_files(json_file, None)
    paths().require_preload_library()
    paths().require_stranger_program()
    load = ["--seconds", str(seconds), "--threads", str(threads)]
    meta = comparison.base_meta(kinds) | {"cores": local.available_cores(), "seconds": seconds, "threads": threads}
    meta |= {"runs": runs, "noise_ms": NOISE_MS}
    outcomes: dict[tuple[Setting, str], list[Outcome]] = {}
    with ended_by_signals():
        alone = computation_alone()
        meta["complete"] = measure(settings, chosen, load, seconds, runs, outcomes)
    meta["failures"] = [
        {"mpi": setting.mpi, "setting": setting.text, "peer": mode, "problem": each.problem}
        for (setting, mode), launches in outcomes.items()
        for each in launches
        if each.problem
    ]
    rows = rows_of(outcomes, alone)
    results.deliver({"meta": meta, "rows": rows, "checks": checks(rows)}, show, json_file)


def chosen_settings(
    kinds: Sequence[str], jobs: Sequence[int], ranks: Sequence[int], sessions: Sequence[str], strangers: Sequence[str]
) -> list[Setting]:
    """One job is in a session of its own, whatever is wished for several; of MPICH every rank is."""
    return list(
        dict.fromkeys(
            Setting(kind, job_count, rank_count, session if job_count > 1 and kind != MPICH else OWN, stranger)
            for kind in kinds
            for stranger in strangers
            for job_count in jobs
            for rank_count in ranks
            for session in sessions
        )
    )


def measure(
    settings: Sequence[Setting], modes: Sequence[Peer], load: list[str], seconds: float, runs: int,
    outcomes: dict[tuple[Setting, str], list[Outcome]],
) -> bool:  # fmt: skip
    """Adds one outcome for each launch. False when it was ended before all were made."""
    count = runs * len(settings) * len(modes)
    with measuring.announced(count, count * (seconds + START_S)) as progress:
        task = progress.task_ids[0]
        try:
            for setting in settings:
                for run in range(runs):
                    for mode in modes:
                        title = f"{TITLES[setting.mpi]}, {setting.text}, {mode.title}, run {run + 1} of {runs}"
                        progress.update(task, description=title)
                        outcome = launch_crowd(setting, mode, load, seconds)
                        if outcome.problem:
                            console.note(f"{TITLES[setting.mpi]}, {setting.text}, {mode.title}: {outcome.problem}")
                        outcomes.setdefault((setting, mode.name), []).append(outcome)
                        progress.advance(task)
        except (KeyboardInterrupt, SystemExit):
            console.note(f"interrupted after {progress.tasks[0].completed:.0f} of {count} launches: incomplete.")
            return False
    return True


def rows_of(outcomes: dict[tuple[Setting, str], list[Outcome]], alone: Sequence[float]) -> list[dict]:
    """One for each setting and mode of which a launch has delivered; `alone`: see computation_alone()."""
    rows = []
    for (setting, mode), launches in outcomes.items():
        good = [each for each in launches if each.problem is None]
        if good:
            row = _row(setting, mode, good, alone)
            native = row if mode == MODES[0].name else next(
                (each for each in rows if each["mode"] == MODES[0].name and _same(each, row)), None
            )  # fmt: skip
            if native is not None:
                row["late_ratio"] = row["worst_late_ms"] / max(native["worst_late_ms"], NOISE_MS)
                row["rounds_ratio"] = row["rounds_per_s"] / native["rounds_per_s"]
            rows.append(row)
    return rows


def _same(one: dict, other: dict) -> bool:
    return all(one[name] == other[name] for name in ("mpi", "jobs", "ranks", "sessions", "stranger"))


def _row(setting: Setting, mode: str, launches: Sequence[Outcome], alone: Sequence[float]) -> dict:
    rounds = [sum(job["rounds_count"] / (job["took_ns"] / 1e9) for job in each.jobs) for each in launches]
    sleepers = [sleeper for each in launches for sleeper in each.sleepers]
    row = {"mpi": setting.mpi, "jobs": setting.jobs, "ranks": setting.ranks, "sessions": setting.sessions}
    row |= {"stranger": setting.stranger, "mode": mode}
    row["worst_late_ms"] = max(sleeper["worst_late_ns"] for sleeper in sleepers) / 1e6
    row["p999_late_ms"] = max(sleeper["p999_late_ns"] for sleeper in sleepers) / 1e6
    for name in ("gaps_over_100ms_count", "gaps_over_1s_count", "sleeps_count"):
        row[name] = sum(sleeper[name] for sleeper in sleepers)
    shares = [
        statistics.mean(rate(one) / free for one, free in zip(each.computations, alone))
        for each in launches
        if each.computations
    ]
    row["computation_share"] = statistics.median(shares) if shares else None
    row |= {"rounds_per_s": statistics.median(rounds), "rounds_min_per_s": min(rounds), "rounds_max_per_s": max(rounds)}
    return row | {"runs": len(launches), "verified": all(job["verified"] for each in launches for job in each.jobs)}


def checks(rows: Sequence[dict]) -> list[dict]:
    """What is asked of Offpath: a stranger feels it no more than the MPI alone, and jobs are not held up for that."""
    found = []
    for mpi in dict.fromkeys(row["mpi"] for row in rows):
        mine = [row for row in rows if row["mpi"] == mpi and row["mode"] != MODES[0].name]
        compared = [row for row in mine if "late_ratio" in row and row["verified"]]
        found += goals.check("guest_late_ratio", [row["late_ratio"] for row in compared], mpi)
        found += goals.check("guest_late_ms", [row["worst_late_ms"] for row in mine], mpi)
        for mode in ("default", "dpu"):
            # Beside a computation they share with it what they have, as the scheduler deals it out.
            ratios = [r["rounds_ratio"] for r in compared if r["mode"] == mode and r["stranger"] == SLEEPS]
            found += goals.check(f"guest_{mode}_rounds_ratio", ratios, mpi)
    return found


def show(result: dict) -> None:
    for mpi in result["meta"]["mpi_versions"]:
        style = {"title_justify": "left", "box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
        columns = ("late ms", "99.9 %", "> 1 s", "share", "rounds/s", "ratio")
        table = Table("jobs", "mode", *columns, keys=2, title=f"{TITLES[mpi]}: a stranger beside jobs", **style)
        for column in table.columns[2:]:
            column.justify, column.no_wrap = "right", True
        last = None
        for row in (row for row in result["rows"] if row["mpi"] == mpi):
            setting = Setting(mpi, row["jobs"], row["ranks"], row["sessions"], row["stranger"]).text
            ratio, share = row.get("rounds_ratio"), row["computation_share"]
            table.add_row(
                setting if setting != last else "", row["mode"], f"{row['worst_late_ms']:.1f}",
                f"{row['p999_late_ms']:.1f}", str(row["gaps_over_1s_count"]), "-" if share is None else f"{share:.2f}",
                f"{row['rounds_per_s']:.1f}", "-" if ratio is None else f"{ratio:.2f}",
            )  # fmt: skip
            last = setting
        if table.row_count:
            console.out.print(table)
    for failure in result["meta"]["failures"]:
        console.note(f"failed: {failure['mpi']}, {failure['setting']}, {failure['peer']}: {failure['problem']}")


def _counts(text: str, option: str) -> list[int]:
    """The numbers in "1,3", each once. Raises UserError for others."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and 1 <= int(word) <= 1024 for word in words):
        raise UserError(f"{option} {text} is not usable (each is a number from 1 to 1024). Write it like 1,3.")
    return list(dict.fromkeys(map(int, words)))
