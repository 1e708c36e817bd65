# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench compression --rates`: collectives on the links of a lab, their data as it is and compressed."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from rich import box
from rich.progress import Progress

from offpath.base import console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import ms_text, size_text
from offpath.base.tables import Table
from offpath.bench import goals, measuring
from offpath.bench.measuring import START_S
from offpath.lab import Lab
from offpath.lab.plan import BURST_BYTES, parse_rate
from offpath.launch import mpis
from offpath.places import comparison
from offpath.places.comparison import LabPlace
from offpath.plan import compressing, model
from offpath.plan import machine as machines

COLLECTIVES = ("ialltoall", "iallgather", "ibcast")
FIELDS = ("tiles", "halo", "random")
RAW, AUTO = "off", "auto"
WISHES = (RAW, AUTO, "lz4", "zstd:shuffle=8")
MPI = mpis.MPICH
TIMES = ("t_pure", "t_total")
WARMUP = 4  # auto has to find out first
# For the estimate only, in operations: what sets the work, and what is compared and done beside the repeats.
CALIBRATION, OTHERS = 7, 6


def known(text: str) -> list[str]:
    """Names of collectives, separated by commas."""
    names = text.split(",")
    for name in names:
        if name not in COLLECTIVES:
            raise UserError(f"'{name}' is no collective of this benchmark. Use {', '.join(COLLECTIVES)}.")
    return names


@dataclass(frozen=True)
class Launch:
    rate: str
    collective: str
    field: str
    wish: str


def launches(rates: Sequence[str], collectives: Sequence[str]) -> list[Launch]:
    """In the order in which they are made: what is compressed has the work that was set for what is not."""
    return [Launch(*case) for case in itertools.product(rates, collectives, FIELDS, WISHES)]


def estimate_s(all_launches: Sequence[Launch], sizes: Sequence[int], repeats: int) -> float:
    """About how long it takes, if nothing but the link limits."""
    seconds = 0.0
    for each in all_launches:
        parts = 1 if each.collective == "ibcast" else 2  # a rank's own part stays
        wire_s = 8 * sum(sizes) / parts / parse_rate(each.rate)
        operations = OTHERS + (CALIBRATION if each.wish == RAW else 0) + 3 * (repeats + WARMUP)
        seconds += START_S + operations * wire_s
    return seconds


def measure(rates: Sequence[str], collectives: Sequence[str], sizes: Sequence[int], repeats: int, runs: int) -> dict:
    """{"meta", "rows"}: a row for each rate, collective, field, size and wish. Ctrl-C keeps those that are there."""
    all_launches = [each for each in launches(rates, collectives) for _ in range(runs)]
    found: list[dict] = []
    with measuring.announced(len(all_launches), estimate_s(all_launches, sizes, repeats)) as progress:
        try:
            _measure(rates, collectives, runs, sizes, repeats, progress, found)
        except (KeyboardInterrupt, SystemExit):
            done = progress.tasks[0].completed
            console.note(f"interrupted after {done:.0f} of {len(all_launches)} launches: incomplete.")
    rows = over_launches(found)
    for row in rows:
        raw = next(r for r in rows if _case(r) == _case(row) and r["wish"] == RAW)
        row["t_pure_ratio"] = round(row["t_pure_ns"] / raw["t_pure_ns"], 3)
        row["t_total_ratio"] = round(row["t_total_ns"] / raw["t_total_ns"], 3)
        row["predicted_ratio"] = _predicted(row) if row["wish"] not in (RAW, AUTO) else None
    complete = len(found) == len(all_launches) * len(sizes)
    about = {"repeats": repeats, "runs": runs, "rates": list(rates), "complete": complete}
    return {"meta": comparison.base_meta([MPI]) | about, "rows": rows, "checks": checks(rows)}


def over_launches(found: Sequence[dict]) -> list[dict]:
    """A row for each case and wish: medians, the least and the most."""
    launches: dict[tuple, list[dict]] = {}
    for row in found:
        launches.setdefault((*_case(row), row["wish"]), []).append(row)
    rows = []
    for same in launches.values():
        row = dict(same[0])
        for name in ("t_pure_ns", "t_total_ns", "efficiency", "coded_ratio"):
            row[name] = statistics.median(each[name] for each in same)
        for time in TIMES:
            row[f"{time}_min_ns"] = min(each[f"{time}_min_ns"] for each in same)
            row[f"{time}_max_ns"] = max(each[f"{time}_max_ns"] for each in same)
        rows.append(row | {"runs": len(same), "verified": all(each["verified"] for each in same)})
    return rows


def checks(rows: Sequence[dict]) -> list[dict]:
    """What auto finds out by itself, against the better of the fixed choices: raw data is one, too."""
    fixed: dict[tuple, int] = {}
    for row in rows:
        if row["wish"] != AUTO and row["verified"]:
            fixed[_case(row)] = min(row["t_pure_ns"], fixed.get(_case(row), row["t_pure_ns"]))
    ours = [row for row in rows if row["wish"] == AUTO and row["bytes"] >= goals.MIN_BYTES and row["verified"]]
    ratios = [row["t_pure_ns"] / fixed[_case(row)] for row in ours if _case(row) in fixed]
    return goals.check("compression_auto_ratio", ratios)


def _measure(
    rates: Sequence[str], collectives: Sequence[str], runs: int, sizes: Sequence[int], repeats: int, progress: Progress,
    rows: list[dict],
) -> None:  # fmt: skip
    """The wishes of a case in turns, so that all meet the same machine."""
    for rate in rates:
        with Lab(nodes=2, rate=rate) as lab:
            work: dict[tuple, list[int]] = {}  # what each case has to do, once and for all
            for _, each in itertools.product(range(runs), launches([rate], collectives)):
                title = f"{rate}, {each.collective}, {each.field}, {each.wish}"
                progress.update(progress.task_ids[0], description=title)
                argv = ["--collective", each.collective, "--field", each.field, "--verify",
                        "--sizes", ",".join(map(str, sizes)), "--repeats", str(repeats),
                        "--warmup", str(WARMUP)]  # fmt: skip
                case = each.collective, each.field
                argv += ["--work-iterations", ",".join(map(str, work[case]))] if case in work else []
                found = list(_run(LabPlace(lab, 1), argv, each.wish))
                work.setdefault(case, [row["work_iterations"] for row in found])
                rows += [asdict(each) | row for row in found]
                progress.advance(progress.task_ids[0])


def _case(row: dict) -> tuple:
    return row["rate"], row["collective"], row["field"], row["bytes"]


def _predicted(row: dict) -> float:
    """t_pure against raw, by the planner's model of a plain server with links of that rate."""
    machine = machines.changed(machines.default(), link=row["rate"])
    machine["network"]["burst_bytes"] = BURST_BYTES
    coded = compressing.changed(machine, row["wish"].split(":")[0], row["coded_ratio"])
    where = model.Placement(2, cores=[[0], [1]], service_cores=[0, 1])
    raw, with_it = (
        model.bench(each, where, row["collective"], row["bytes"], model.DPU, 0).pure for each in (machine, coded)
    )
    return round(with_it / raw, 3)


def _run(place: LabPlace, options: Sequence[str], wish: str) -> Iterator[dict]:
    argv = [str(paths().bench_program("collectives", MPI)), *options]
    env = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_SERVICE_SHARE": "1", "OFFPATH_COMPRESS": wish}
    output, stats = comparison.run_for_json(place, MPI, argv, True, env)
    coded, wire = (sum(rank.get(f"{name}_bytes", 0) for rank in stats) for name in ("coded", "wire"))
    for row in output["rows"]:
        yield {
            "bytes": row["bytes"], "verified": row["verified"], "work_iterations": row["work_iterations"],
            **{f"{time}{part}_ns": row[f"{time}{part}_ns"] for time in TIMES for part in ("", "_min", "_max")},
            "efficiency": row["efficiency"],
            "coded_ratio": round(coded / wire, 3) if wire else 1.0,
        }  # fmt: skip


def show(result: dict) -> None:
    table = Table(
        "rate", "what", "size", "field", "wish", "ratio", "t_pure", "min-max", "of raw", "predicted", "t_total",
        "efficiency",
        title="Collectives of two nodes, compressed on their way", title_justify="left",
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), keys=5,
    )  # fmt: skip
    for row in result["rows"]:
        table.add_row(
            row["rate"], row["collective"], size_text(row["bytes"]), row["field"], row["wish"],
            f"{row['coded_ratio']:.2f}", ms_text(row["t_pure_ns"]),
            f"{ms_text(row['t_pure_min_ns'])}-{ms_text(row['t_pure_max_ns'])}", f"{row['t_pure_ratio']:.3f}",
            f"{row['predicted_ratio']:.3f}" if row["predicted_ratio"] else "",
            f"{row['t_total_ratio']:.3f}", f"{row['efficiency']:.3f}",
        )  # fmt: skip
    console.out.print(table)
