# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath bench plan` predicts and measures: collectives and messages with computation, and programs."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from offpath.base import handover
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import size_text
from offpath.bench import measuring, tuning
from offpath.bench.kit import turns
from offpath.bench.suite import pt2pt
from offpath.places import comparison
from offpath.places.comparison import Place
from offpath.plan import calibrate, model, predict, profile_command
from offpath.trace import profile

RATIOS = (0.5, 1.0, 2.0)  # computation to pure communication
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


    def row(self) -> dict:
        return asdict(self) | {
            name: getattr(self, name)
            for name in ("measured_host", "measured_dpu", "slowed", "error", "host_error", "right", "same_words")
        }  # fmt: skip


def summarize(cases: Sequence[Case]) -> dict:
    if not cases:
        return {}
    errors = [abs(case.error) for case in cases]
    host_errors = [abs(case.host_error) for case in cases]
    return {
        "cases": len(cases), "median_error": statistics.median(errors), "worst_error": max(errors),
        "median_host_error": statistics.median(host_errors), "worst_host_error": max(host_errors),
        "wrong_verdicts": sum(not case.right for case in cases),
        "other_words": sum(not case.same_words for case in cases),
        "median_slowed": statistics.median(case.slowed for case in cases),
    }  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What all that is compared has in common. `machine`: at the lab's rate."""

    mpi: str
    machine: dict
    repeats: int
    labels: dict  # nodes and rate

    def case(self, what: str, ratio: float | None, host: float, dpu: float) -> Case:
        return Case(what, self.labels["nodes"], self.labels["rate"], ratio, host, dpu)


class Collective:
    """One kind and size, with each ratio of computation. Predicted when it is launched for the first time."""

    def __init__(self, setting: Setting, kind: str, size: int) -> None:
        self.setting, self.kind, self.size = setting, kind, size
        self.made: list[Case] = []
        self.work_ns: list[float] = []
        labels = {"what": f"{kind} {size_text(size)}", **setting.labels}
        self.host, self.dpu = (
            turns.Case({**labels, "path": path}, functools.partial(self._launch, path == model.DPU))
            for path in (model.HOST, model.DPU)
        )
        self.rounds = [[self.host, self.dpu]]

    def cases(self) -> Iterator[Case]:
        for index, case in enumerate(self.made):
            rows = {path: [launch[index] for launch in of.launches]
                    for path, of in ((model.HOST, self.host), (model.DPU, self.dpu))}  # fmt: skip
            case.host_launches, case.dpu_launches = ([row["t_total_ns"] for row in of] for of in rows.values())
            every = rows[model.HOST] + rows[model.DPU]
            case.slowed_launches = [row["t_compute_ns"] / self.work_ns[index] for row in every]
            case.verified = all(row["verified"] for row in every)
            yield case

    def _launch(self, offload: bool, where: Place) -> list[dict]:
        if not self.made:
            self._predict(calibrate.placement_of(where.meta))
        is_message = self.kind == model.SEND
        program = pt2pt.PROGRAM if is_message else measuring.COLLECTIVE_PROGRAM
        argv = [str(paths().bench_program(program.name, self.setting.mpi)), "--verify"]
        argv += [f"--{program.noun}", tuning.PATTERN if is_message else self.kind]
        argv += ["--repeats", str(self.setting.repeats), "--sizes", ",".join([str(self.size)] * len(self.work_ns))]
        argv += ["--work-ns", ",".join(str(round(ns)) for ns in self.work_ns)]
        return _run(where, self.setting.mpi, argv, offload)[0]["rows"]

    def _predict(self, place: model.Placement) -> None:
        # The benchmark sets its work while all ranks of a core do theirs.
        sharing = place.ranks / len({core for cores in place.cores for core in cores})
        predicted = functools.partial(model.bench, self.setting.machine, place, self.kind, self.size)
        pure = predicted(model.HOST, 0).pure
        self.work_ns = [ratio * pure for ratio in RATIOS]
        for ratio, work_ns in zip(RATIOS, self.work_ns):
            host, dpu = (predicted(path, work_ns / sharing).total for path in (model.HOST, model.DPU))
            self.made.append(self.setting.case(f"{self.kind} {size_text(self.size)}", ratio, host, dpu))


class App:
    """A program is profiled without offloading, its offloaded time predicted, then measured: from MPI_Init to
    MPI_Finalize, all that the profile holds."""

    def __init__(self, setting: Setting, name: str) -> None:
        self.setting, self.name = setting, name
        self.argv = [str(paths().app(name, setting.mpi)), *APPS[name]]
        self.made: list[Case] = []
        labels = {"what": name, **setting.labels}
        self.host = turns.Case({**labels, "path": model.HOST}, self._record)
        self.dpu = turns.Case({**labels, "path": model.DPU}, self._launch)
        self.rounds = [[self.host], [self.dpu]]

    def cases(self) -> Iterator[Case]:
        for case in self.made:
            case.host_launches = [found.end_ns for found in self.host.launches]
            case.dpu_launches = list(self.dpu.launches)
            yield case

    def _record(self, where: Place) -> profile.Profile:
        with handover.folder() as folder:
            prefix, merged = folder / "rank", folder / "profile.jsonl"
            comparison.run_for_json(where, self.setting.mpi, self.argv, False, profile_command.variables(prefix))
            return profile_command.merge(prefix, merged)

    def _launch(self, where: Place) -> int:
        recorded = sorted(self.host.launches, key=lambda found: found.end_ns)
        if not recorded:
            raise UserError("not launched: no launch without offloading has been profiled.", turns.FAILED)
        if not self.made:
            typical = recorded[len(recorded) // 2]
            found = predict.predict(typical, self.setting.machine, recorded[0].node_of, policy=(EVERYTHING,))
            self.made.append(self.setting.case(self.name, None, found.recorded, found.offloaded))
        return max(rank["run_ns"] for rank in _run(where, self.setting.mpi, self.argv, True)[1])


def _run(where: Place, mpi: str, argv: Sequence[str], offload: bool) -> tuple[dict, list[dict]]:
    return comparison.run_for_json(where, mpi, argv, offload, {"OFFPATH_POLICY": EVERYTHING} if offload else {})
