# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench compression --rates`: collectives on the links of a lab, their data as it is and compressed."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

from offpath.base.paths import paths
from offpath.bench import goals
from offpath.bench.kit import Benchmark, Case, Site, Table, rows, turns
from offpath.bench.measuring import START_S
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


def _auto(rows: Sequence[dict]) -> list[float]:
    """What auto finds out by itself, against the better of the fixed choices: raw data is one, too."""
    fixed: dict[tuple, int] = {}
    for row in rows:
        if row["wish"] != AUTO:
            fixed[_case(row)] = min(row["t_pure_ns"], fixed.get(_case(row), row["t_pure_ns"]))
    ours = [row for row in rows if row["wish"] == AUTO and row["bytes"] >= goals.MIN_BYTES]
    return [row["t_pure_ns"] / fixed[_case(row)] for row in ours if _case(row) in fixed]


BENCHMARK = Benchmark(
    [Table("Collectives of two nodes, compressed on their way", [
        ("rate", "{rate}"), ("what", "{collective}"), ("size", "{bytes:size}"), ("field", "{field}"),
        ("wish", "{wish}"), ("ratio", "{coded_ratio:.2f}"), ("t_pure", "{t_pure_ns:ms}"),
        ("min-max", "{t_pure_min_ns:ms}-{t_pure_max_ns:ms}"), ("of raw", "{t_pure_ratio:.3f}"),
        ("predicted", "{predicted_ratio:.3f}"), ("t_total", "{t_total_ratio:.3f}"),
        ("efficiency", "{efficiency:.3f}"),
    ], keys=5)],
    {"compression_auto_ratio": _auto},
)  # fmt: skip


def sites(rates: Sequence[str], collectives: Sequence[str], sizes: Sequence[int], repeats: int) -> list[Site]:
    """All of a rate take turns. What is compressed has the work that was set for what is not."""
    argv = ["--verify", "--sizes", ",".join(map(str, sizes)), "--repeats", str(repeats), "--warmup", str(WARMUP)]
    found = []
    for rate in rates:
        cases: list[Case] = []
        for collective, field in itertools.product(collectives, FIELDS):
            raw = None
            for wish in WISHES:
                labels = {"rate": rate, "collective": collective, "field": field, "wish": wish}
                case = Case(labels, lambda _: [])
                raw = raw or case
                case.launch = functools.partial(_launch, argv, labels, raw)
                cases.append(case)
        found.append(Site([cases], functools.partial(comparison.place, 2, 1, rate, False)))
    return found


def estimate_s(all_sites: Sequence[Site], sizes: Sequence[int], repeats: int) -> float:
    """About how long a turn takes, if nothing but the link limits."""
    seconds = 0.0
    for each in (case.labels for site in all_sites for case in site.cases):
        parts = 1 if each["collective"] == "ibcast" else 2  # a rank's own part stays
        wire_s = 8 * sum(sizes) / parts / parse_rate(each["rate"])
        operations = OTHERS + (CALIBRATION if each["wish"] == RAW else 0) + 3 * (repeats + WARMUP)
        seconds += START_S + operations * wire_s
    return seconds


def measure(rates: Sequence[str], collectives: Sequence[str], sizes: Sequence[int], repeats: int, runs: int) -> dict:
    """{"meta", "rows"}: a row for each rate, collective, field, size and wish."""
    everywhere = sites(rates, collectives, sizes, repeats)
    meta = turns.measure(everywhere, runs, runs * estimate_s(everywhere, sizes, repeats))
    meta |= comparison.base_meta([MPI]) | {"repeats": repeats, "rates": list(rates)}
    found = rows.of_cases(case for site in everywhere for case in site.cases)
    raws = {_case(row): row for row in found if row["wish"] == RAW}
    compared = [row for row in found if _case(row) in raws]
    for row in compared:
        raw = raws[_case(row)]
        row["t_pure_ratio"] = round(row["t_pure_ns"] / raw["t_pure_ns"], 3)
        row["t_total_ratio"] = round(row["t_total_ns"] / raw["t_total_ns"], 3)
        row["predicted_ratio"] = _predicted(row) if row["wish"] not in (RAW, AUTO) else None
    return {"meta": meta, "rows": compared}


def _launch(argv: Sequence[str], labels: dict, raw: Case, where: LabPlace) -> list[dict]:
    words = ["--collective", labels["collective"], "--field", labels["field"], *argv]
    if raw.launches:
        words += ["--work-iterations", ",".join(str(row["work_iterations"]) for row in raw.launches[0])]
    return list(_run(where, words, labels["wish"]))


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
