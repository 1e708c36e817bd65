# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench plan`: predictions against measurements that were made after them.

Calibration sees one link rate and two sizes of one collective. Then, for rates, sizes, collectives and amounts of
computation that it never saw, each case is predicted first and measured afterwards.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.bench.kit import Benchmark, Line, Site, Table, options, turns
from offpath.bench.plan_cases import APPS, KINDS, App, Collective, Setting, summarize
from offpath.launch import mpis
from offpath.places import asked, comparison
from offpath.plan import calibrate
from offpath.plan import machine as machines

CALIBRATION_RATE = "500mbit"
QUIET = 1.05  # times the work asked for


def _in_short(result: dict) -> str:
    summary = result["summary"]
    if not summary:
        return "No case was measured on both paths."
    said = (
        f"{summary['cases']} cases: error of the offloaded time {summary['median_error']:.1%} median, "
        f"{summary['worst_error']:.1%} worst; of the host's {summary['median_host_error']:.1%}, "
        f"{summary['worst_host_error']:.1%}; wrong verdicts {summary['wrong_verdicts']}, "
        f"other words {summary['other_words']}"
    )
    if summary["median_slowed"] > QUIET:
        said += (
            f"\nBare work took {summary['median_slowed']:.2f} times as long as asked: the machine was busy with other "
            "things (errors are not the planner's alone). Repeat it on a quiet machine."
        )
    return said


def _errors(of: Callable[[Iterable[float]], float]) -> Callable[[list[dict]], list[float]]:
    return lambda rows: [of([abs(row["error"]) for row in rows])]


BENCHMARK = Benchmark(
    [
        Table("Predictions, and what was measured after them", [
            ("case", "{what}"), ("nodes", "{nodes}"), ("rate", "{rate}"), ("ratio", "{ratio:g}"),
            ("host: predicted, measured, ms", "{predicted_host:ms}, {measured_host:ms}"),
            ("error", "{host_error:+.0%}"),
            ("DPU: predicted, measured (min-max), ms",
             lambda row: f"{row['predicted_dpu'] / 1e6:.2f}, {row['measured_dpu'] / 1e6:.2f} "
                         f"({min(row['dpu_launches']) / 1e6:.2f}-{max(row['dpu_launches']) / 1e6:.2f})"),
            ("error", "{error:+.0%}"),
            ("gain: predicted, measured",
             lambda row: f"{row['predicted_host'] / row['predicted_dpu'] - 1:+.0%}, "
                         f"{row['measured_host'] / row['measured_dpu'] - 1:+.0%}"),
            ("verdict", lambda row: "right" if row["right"] else "wrong"),
        ], keys=4),
        Line(_in_short),
    ],
    {
        "plan_median_error_ratio": _errors(statistics.median),
        "plan_worst_error_ratio": _errors(max),
        "plan_wrong_verdicts_count": lambda rows: [sum(not row["right"] for row in rows)],
    },
    subject=lambda row: row["mpi"],
)  # fmt: skip



app = commands.alone()


@app.command()
def bench_plan_command(
    mpi: asked.OneMpi = mpis.OPENMPI,
    full: Annotated[
        bool, typer.Option("--full", help="2 and 4 nodes, three rates, programs too: a quarter of an hour.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=3, help="Repeats of each measurement in a launch.")] = 7,
    launches: Annotated[int, typer.Option(min=1, help="Launches on each path, in turns; their median counts.")] = 3,
    machine_file: Annotated[Optional[Path], typer.Option("--machine", metavar="FILE", help="Do not calibrate.")] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Compare the planner's predictions with measurements in the lab that are made after them.

    Calibrates at 500mbit with an alltoall of two sizes; then predicts and measures collectives and messages at other
    rates, other sizes and three ratios of computation to communication; with --full also on 4 nodes, and fft3d and
    bspmm from their profiles. Prints each case with its error, the median and the worst, and whether the verdict was
    right: which path wins, where one does by more than 5 %. *Other words* counts where `offpath plan` would have worded
    it otherwise, as where 4 % were predicted and 6 measured.

    Examples:

        offpath bench plan

        offpath bench plan --full --json validation.json
    """
    if mpi not in (mpis.OPENMPI, mpis.MPICH):
        raise UserError(f"'{mpi}' cannot be validated. Give --mpi openmpi or --mpi mpich.")
    options.require_lab("Predictions are")
    options.check_files(json_file)
    if machine_file:
        machine = machines.load(machine_file)
    else:
        with comparison.place(2, 1, CALIBRATION_RATE, False) as where:
            machine = calibrate.calibrate(where, mpi, calibrate.REPEATS)
    sites, compared = [], []
    for nodes in (2, 4) if full else (2,):
        for rate in ("250mbit", "500mbit", "1gbit") if full else ("250mbit", "1gbit"):
            setting = Setting(mpi, machines.changed(machine, link=rate), repeats, {"nodes": nodes, "rate": rate})
            here = [Collective(setting, kind, size) for kind, size in KINDS]
            here += [App(setting, name) for name in APPS] if full else []
            rounds = [cases for each in here for cases in each.rounds]
            sites.append(Site(rounds, functools.partial(comparison.place, nodes, 1, rate, False)))
            compared += here
    meta = comparison.base_meta([mpi]) | turns.measure(sites, launches) | {"repeats": repeats}
    cases = [case for each in compared if each.host.launches and each.dpu.launches for case in each.cases()]
    rows = [{"mpi": mpi, **case.row()} for case in cases]
    BENCHMARK.deliver({"meta": meta, "machine": machine, "summary": summarize(cases), "rows": rows}, json_file)
