# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench plan`: predictions against measurements that were made after them.

Calibration sees one link rate and two sizes of one collective. Then, for rates, sizes, collectives and amounts of
computation that it never saw, each case is predicted first and measured afterwards.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, files, handover
from offpath.base.errors import UserError
from offpath.base.oldest import zip_equal
from offpath.base.paths import paths
from offpath.base.sizes import size_text
from offpath.base.tables import Table
from offpath.bench import goals, measuring, pt2pt, results, tuning
from offpath.launch import mpis
from offpath.places import comparison
from offpath.plan import calibrate, model, predict, profile_command
from offpath.plan import machine as machines
from offpath.trace import profile

CALIBRATION_RATE = "500mbit"
RATIOS = (0.5, 1.0, 2.0)  # computation to pure communication
QUIET = 1.05  # times the work asked for
KINDS = (("ialltoall", 4 << 20), ("iallgather", 2 << 20), (model.SEND, 1 << 20))
EVERYTHING = f"{calibrate.EVERYTHING},{model.SEND}:dpu"
# Programs that are profiled and replayed, and how to run them.
APPS = {
    "fft3d": ("--n", "96", "--variables", "4", "--repeats", "6", "--work", "2"),
    "bspmm": ("--tile", "256", "--tiles", "8", "--repeats", "3"),
}


@dataclass
class Case:
    """Times in ns. The predictions are there before the measurement begins."""

    what: str
    nodes: int
    rate: str
    ratio: float | None
    predicted_host: float
    predicted_dpu: float
    host_launches: list[float] = field(default_factory=list)
    dpu_launches: list[float] = field(default_factory=list)
    # How much longer the bare work took than was asked: what others did on the machine.
    slowed_launches: list[float] = field(default_factory=list)
    verified: bool = True  # programs that find a wrong result end the command

    @property
    def measured_host(self) -> float:
        return statistics.median(self.host_launches)

    @property
    def measured_dpu(self) -> float:
        return statistics.median(self.dpu_launches)

    @property
    def slowed(self) -> float:
        return statistics.median(self.slowed_launches or [1.0])

    @property
    def error(self) -> float:
        """Of the offloaded time: what the user asks for."""
        return self.predicted_dpu / self.measured_dpu - 1

    @property
    def host_error(self) -> float:
        return self.predicted_host / self.measured_host - 1

    @property
    def predicted_gain(self) -> float:
        return self.predicted_host / self.predicted_dpu - 1

    @property
    def measured_gain(self) -> float:
        return self.measured_host / self.measured_dpu - 1

    @property
    def right(self) -> bool:
        """Whether it says which path wins; where hardly any does, either is right."""
        return abs(self.measured_gain) <= predict.WORTH or self.predicted_gain * self.measured_gain > 0

    @property
    def same_words(self) -> bool:
        """Whether `offpath plan` would say of the measurement what it said before."""
        return predict.verdict_of(self.predicted_gain) == predict.verdict_of(self.measured_gain)


@dataclass(frozen=True)
class Setting:
    """What all cases of one lab share."""

    where: comparison.LabPlace
    mpi: str
    machine: dict  # at the lab's rate
    repeats: int
    launches: int

    def case(self, what: str, ratio: float | None, host: float, dpu: float) -> Case:
        return Case(what, self.where.meta["nodes"], self.where.meta["rate"], ratio, host, dpu)

    def note(self, what: str) -> None:
        console.note(f"{what}, {self.where.meta['rate']}, {self.where.meta['nodes']} nodes")


app = commands.alone()


@app.command()
def bench_plan_command(
    mpi: Annotated[str, typer.Option(help="openmpi or mpich.")] = mpis.OPENMPI,
    full: Annotated[
        bool, typer.Option("--full", help="2 and 4 nodes, three rates, programs too: a quarter of an hour.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=3, help="Repeats of each measurement in a launch.")] = 7,
    launches: Annotated[int, typer.Option(min=1, help="Launches on each path, in turns; their median counts.")] = 3,
    machine_file: Annotated[Optional[Path], typer.Option("--machine", metavar="FILE", help="Do not calibrate.")] = None,
    json_file: results.JsonFile = None,
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
    if not comparison.lab_is_possible():
        raise UserError("predictions are validated in the lab (it needs root). Run as root.")
    files.writable_file(json_file, "--json")
    if machine_file:
        machine = machines.load(machine_file)
    else:
        with comparison.place(2, 1, CALIBRATION_RATE, False) as where:
            machine = calibrate.calibrate(where, mpi, calibrate.REPEATS)
    cases: list[Case] = []
    for nodes in (2, 4) if full else (2,):
        for rate in ("250mbit", "500mbit", "1gbit") if full else ("250mbit", "1gbit"):
            with comparison.place(nodes, 1, rate, False) as where:
                setting = Setting(where, mpi, machines.changed(machine, link=rate), repeats, launches)
                cases += collective_cases(setting)
                if full:
                    cases += app_cases(setting)
    summary = summarize(cases)
    rows = [
        asdict(case)
        | {"measured_host": case.measured_host, "measured_dpu": case.measured_dpu, "slowed": case.slowed}
        | {"error": case.error, "right": case.right, "same_words": case.same_words}
        for case in cases
    ]
    meta = comparison.base_meta([mpi]) | {"runs": launches, "repeats": repeats}
    result = {"meta": meta, "machine": machine, "summary": summary, "rows": rows, "checks": checks(summary, mpi)}
    results.deliver(result, lambda _: show(cases, summary), json_file)


def collective_cases(setting: Setting) -> list[Case]:
    place = calibrate.placement_of(setting.where.meta)
    # The benchmark sets its work while all ranks of a core do theirs.
    sharing = place.ranks / len({core for cores in place.cores for core in cores})
    cases = []
    for kind, size in KINDS:
        pure = model.bench(setting.machine, place, kind, size, model.HOST, 0).pure
        made = []
        for ratio in RATIOS:
            work_ns = ratio * pure / sharing
            host, dpu = (
                model.bench(setting.machine, place, kind, size, path, work_ns).total for path in (model.HOST, model.DPU)
            )
            made.append(setting.case(f"{kind} {size_text(size)}", ratio, host, dpu))
        _measure(setting, kind, size, [ratio * pure for ratio in RATIOS], made)
        cases += made
    return cases


def _measure(setting: Setting, kind: str, size: int, work_ns: list[float], cases: list[Case]) -> None:
    is_message = kind == model.SEND
    program = pt2pt.PROGRAM if is_message else measuring.COLLECTIVE_PROGRAM
    argv = [str(paths().bench_program(program.name, setting.mpi))]
    argv += [f"--{program.noun}", tuning.PATTERN if is_message else kind]
    argv += ["--verify", "--repeats", str(setting.repeats), "--sizes", ",".join([str(size)] * len(work_ns))]
    argv += ["--work-ns", ",".join(str(round(ns)) for ns in work_ns)]
    setting.note(f"{kind} {size_text(size)}")
    for offload in (False, True) * setting.launches:
        output, _ = _launch(setting, argv, offload)
        for case, row, asked_ns in zip_equal(cases, output["rows"], work_ns):
            case.slowed_launches.append(row["t_compute_ns"] / asked_ns)
            case.verified = case.verified and row["verified"]
            (case.dpu_launches if offload else case.host_launches).append(row["t_total_ns"])


def _launch(setting: Setting, argv: list[str], offload: bool) -> tuple[dict, list[dict]]:
    env = {"OFFPATH_POLICY": EVERYTHING} if offload else {}
    return comparison.run_for_json(setting.where, setting.mpi, argv, offload, env)


def app_cases(setting: Setting) -> list[Case]:
    """The program is profiled without offloading, its offloaded time predicted, then measured: from MPI_Init to
    MPI_Finalize, all that the profile holds."""
    cases = []
    for name, arguments in APPS.items():
        setting.note(name)
        argv = [str(paths().app(name, setting.mpi)), *arguments]
        recorded = sorted((_record(setting, argv) for _ in range(setting.launches)), key=lambda found: found.end_ns)
        prediction = predict.predict(
            recorded[len(recorded) // 2], setting.machine, recorded[0].node_of, policy=(EVERYTHING,)
        )
        case = setting.case(name, None, prediction.recorded, prediction.offloaded)
        case.host_launches = [found.end_ns for found in recorded]
        for _ in range(setting.launches):
            _, stats = _launch(setting, argv, True)
            case.dpu_launches.append(max(rank["run_ns"] for rank in stats))
        cases.append(case)
    return cases


def _record(setting: Setting, argv: list[str]) -> profile.Profile:
    with handover.folder() as folder:
        prefix, merged = folder / "rank", folder / "profile.jsonl"
        comparison.run_for_json(setting.where, setting.mpi, argv, False, profile_command.variables(prefix))
        profile_command.merge(prefix, merged)
        return profile.load(merged)


def summarize(cases: list[Case]) -> dict:
    errors = [abs(case.error) for case in cases]
    host_errors = [abs(case.host_error) for case in cases]
    return {
        "cases": len(cases), "median_error": statistics.median(errors), "worst_error": max(errors),
        "median_host_error": statistics.median(host_errors), "worst_host_error": max(host_errors),
        "wrong_verdicts": sum(not case.right for case in cases),
        "other_words": sum(not case.same_words for case in cases),
        "median_slowed": statistics.median(case.slowed for case in cases),
    }  # fmt: skip


def checks(summary: dict, mpi: str) -> list[dict]:
    found = goals.check("plan_median_error_ratio", [summary["median_error"]], mpi)
    found += goals.check("plan_worst_error_ratio", [summary["worst_error"]], mpi)
    return found + goals.check("plan_wrong_verdicts_count", [summary["wrong_verdicts"]], mpi)


def show(cases: list[Case], summary: dict) -> None:
    table = Table("case", "nodes", "rate", "ratio", "host: predicted, measured, ms", "error",
                  "DPU: predicted, measured (min-max), ms", "error", "gain: predicted, measured",
                  "verdict", keys=4)  # fmt: skip
    for case in cases:
        table.add_row(
            case.what, str(case.nodes), case.rate, "" if case.ratio is None else f"{case.ratio:g}",
            f"{case.predicted_host / 1e6:.2f}, {case.measured_host / 1e6:.2f}", f"{case.host_error:+.0%}",
            f"{case.predicted_dpu / 1e6:.2f}, {case.measured_dpu / 1e6:.2f} "
            f"({min(case.dpu_launches) / 1e6:.2f}-{max(case.dpu_launches) / 1e6:.2f})", f"{case.error:+.0%}",
            f"{case.predicted_gain:+.0%}, {case.measured_gain:+.0%}", "right" if case.right else "wrong",
        )  # fmt: skip
    console.out.print(table)
    console.out.print(
        f"{summary['cases']} cases: error of the offloaded time {summary['median_error']:.1%} median, "
        f"{summary['worst_error']:.1%} worst; of the host's {summary['median_host_error']:.1%}, "
        f"{summary['worst_host_error']:.1%}; wrong verdicts {summary['wrong_verdicts']}, "
        f"other words {summary['other_words']}"
    )
    if summary["median_slowed"] > QUIET:
        console.note(
            f"bare work took {summary['median_slowed']:.2f} times as long as asked: "
            f"the machine was busy with other things "
            "(errors are not the planner's alone). Repeat it on a quiet machine."
        )
