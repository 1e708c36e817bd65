# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks aim at, and how near one run comes: the only place of these numbers.

docs/performance.md has them in a table, with what is reached (make figures; a test compares them).
A check is one goal against the worst value of a run: {"name", "value", "goal", "met", "unjudged"}. What was not
measured has no check.
What cannot be is noise: it meets no goal ("met" is null, "unjudged" says why), and hides no value that misses it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

AT_LEAST, ABOVE, AT_MOST, BELOW = "at least", "above", "at most", "below"
_HOLDS = {AT_LEAST: operator.ge, ABOVE: operator.gt, AT_MOST: operator.le, BELOW: operator.lt}
MIN_BYTES = 1 << 20  # what is aimed at for transfers is aimed at from this size on
ONE_LAUNCH, NOISE = "not judged: one launch", "noise: repeat"


@dataclass(frozen=True)
class Goal:
    """`name` begins with the benchmark and ends with the unit."""

    name: str
    comparison: str
    number: float
    about: str
    most: float = math.inf  # what can be: 1 is all there is to gain
    rate: str | None = None  # of the link, where it is aimed at for that one only

    def can_be(self, value: float) -> bool:
        return 0 <= value <= self.most and (value > 0 or self.comparison in (AT_MOST, BELOW))

    def worst(self, values: Iterable[float]) -> float:
        return min(values) if self.comparison in (AT_LEAST, ABOVE) else max(values)

    def met_by(self, value: float) -> bool:
        return _HOLDS[self.comparison](value, self.number)

    @property
    def text(self) -> str:
        return f"{self.comparison} {self.number:g}"

    @property
    def cells(self) -> str:
        """As the documents have it."""
        return f"`{self.name}` | {self.text} | {self.about}"


GOALS = (
    Goal("alltoall_gain_ratio", AT_LEAST, 1.7, "t_total of the MPI alone / of Offpath, from 1 MiB per peer on"),
    Goal("alltoall_efficiency_250mbit_ratio", AT_LEAST, 0.95, "from 1 MiB per peer on", most=1, rate="250mbit"),
    Goal("alltoall_efficiency_1gbit_ratio", AT_LEAST, 0.88, "from 1 MiB per peer on", most=1, rate="1gbit"),
    Goal("alltoall_t_pure_ratio", AT_MOST, 1.05, "t_pure of Offpath / of the MPI alone, from 1 MiB per peer on"),
    Goal("collectives_efficiency_250mbit_ratio", AT_LEAST, 0.95, "from 1 MiB in total on", most=1, rate="250mbit"),
    Goal("collectives_efficiency_1gbit_ratio", AT_LEAST, 0.9, "from 1 MiB in total on", most=1, rate="1gbit"),
    Goal("collectives_gain_ratio", ABOVE, 1.0, "t_total of the best peer / of Offpath, from 1 MiB in total on"),
    Goal("collectives_unchanged_gain_ratio", AT_LEAST, 1.0, "the same, peers that leave the program as it is"),
    Goal("collectives_dpu_t_pure_ratio", AT_MOST, 1.1, "t_pure, service on DPUs / on the cores, from 1 MiB on"),
    Goal("collectives_dpu_efficiency_ratio", AT_LEAST, 0.95, "with the service on a DPU, from 1 MiB on", most=1),
    Goal("pt2pt_efficiency_250mbit_ratio", AT_LEAST, 0.95, "messages of 1 MiB and more", most=1, rate="250mbit"),
    Goal("pt2pt_efficiency_1gbit_ratio", AT_LEAST, 0.9, "messages of 1 MiB and more", most=1, rate="1gbit"),
    Goal("pt2pt_gain_ratio", ABOVE, 1.0, "t_total of the best peer / of Offpath, messages of 1 MiB and more"),
    Goal("pt2pt_unchanged_gain_ratio", AT_LEAST, 1.0, "the same, peers that leave the program as it is"),
    Goal("adapt_phase_ratio", AT_MOST, 1.05, "automatic / the better fixed choice, each kind of phase"),
    Goal("adapt_overall_ratio", BELOW, 1.0, "automatic / the better fixed choice, all phases"),
    Goal("guest_late_ratio", AT_MOST, 1.5, "worst lateness of an unrelated sleeper, Offpath / native (at least 40 ms)"),
    Goal("guest_late_ms", BELOW, 100.0, "worst lateness of an unrelated sleeper, with Offpath"),
    Goal("guest_default_rounds_ratio", AT_LEAST, 0.97, "rounds of jobs on shared cores, with Offpath / natively"),
    Goal("guest_dpu_rounds_ratio", AT_LEAST, 0.65, "the same with everything offloaded to the shared cores"),
    Goal("scale_rank_kib", AT_MOST, 2048, "a rank and its part of the service beyond the MPI alone, 64 ranks a node"),
    Goal("scale_dup_ratio", AT_MOST, 1.5, "MPI_Comm_dup with Offpath / natively, any number of ranks"),
    Goal("scale_init_ratio", AT_MOST, 1.1, "MPI_Init with Offpath, less 20 ms / natively, any number of ranks"),
    Goal("onesided_computing_ratio", AT_MOST, 1.2, "t_pure of Offpath, target computing / idle"),
    Goal("bspmm_gain_ratio", AT_LEAST, 1.5, "t_total of the MPI alone / with its communication off the path"),
    Goal("bspmm_both_gain_ratio", AT_LEAST, 1.91, "the same, products of tiles as tasks off the path, too"),
    Goal("bspmm_longer_ratio", AT_MOST, 1.15, "t_total / the longer of multiplying and communication, off the path"),
    Goal("halo3d_gain_ratio", ABOVE, 1.0, "a sweep with the MPI alone / with Offpath, any number of sweeps a message"),
    Goal("halo3d_error_ratio", AT_MOST, 0.1, "error of the predicted sweep, worst case"),
    Goal("openmp_empty_region_us", AT_MOST, 10.0, "an empty region"),
    Goal("openmp_map_us", AT_MOST, 20.0, "map(tofrom) of 128 B"),
    Goal("openmp_bulk_to_ratio", AT_LEAST, 0.8, "rate of a bulk map(to) / of one memcpy between processes"),
    Goal("openmp_bulk_from_ratio", AT_LEAST, 0.8, "rate of a bulk map(from) / of one memcpy between processes"),
    Goal("openmp_overlap_ratio", AT_LEAST, 0.95, "overlap of a `nowait` region and the host", most=1),
    Goal("openmp_halo_ratio", AT_MOST, 1.1, "halo: step / longer of inner and outer part"),
    Goal("krylov_same_ranks_ratio", BELOW, 1.0, "an iteration with the best phi / of PETSc's solver, same ranks"),
    Goal("krylov_all_cores_ratio", BELOW, 1.0, "an iteration with the best phi / of PETSc's solver on all cores"),
    Goal("minimd_gain_ratio", AT_LEAST, 1.15, "a step on the ranks alone / with the best other side, each --every"),
    Goal("minimd_error_ratio", AT_MOST, 0.1, "error of the predicted step, worst case"),
    Goal("tasks_empty_us", AT_MOST, 10.0, "an empty task on shared cores, awaited"),
    Goal("tasks_far_ratio", AT_MOST, 1.2, "an empty task on a DPU, awaited / the link's round trip"),
    Goal("tasks_balance_gain_ratio", AT_LEAST, 2.0, "balancing off / on, one of four ranks 3x slower or loaded"),
    Goal("tasks_balance_perfect_ratio", AT_LEAST, 0.85, "even distribution / balancing on, such a rank", most=1),
    Goal("tasks_balance_even_ratio", AT_MOST, 1.01, "balancing on / off, ranks that are all alike"),
    Goal("tasks_piece_us", AT_MOST, 10.0, "a task of many, each executor: 100,000 per second"),
    Goal("training_batches_gain_ratio", AT_LEAST, 1.14, "an epoch on the host / with batches by an executor (O-DA)"),
    Goal("training_both_gain_ratio", AT_LEAST, 1.14, "an epoch on the host / with validation there, too (O-Hy)"),
    Goal("training_workers_ratio", AT_MOST, 1.03, "an epoch, batches by an executor / by a worker of torch"),
    Goal("training_gradients_gain_ratio", AT_LEAST, 1.3, "a step with gloo / with Offpath, gradients 40 % of it"),
    Goal("training_sharded_gain_ratio", AT_LEAST, 1.5, "a step of FSDP with gloo / with Offpath and overlap"),
    Goal("compression_auto_ratio", AT_MOST, 1.03, "t_pure with `auto` / with the better fixed choice"),
    Goal("multicast_time_ratio", AT_MOST, 1.05, "an allgather by multicast / by the ring"),
    Goal("multicast_cpu_ratio", AT_MOST, 0.65, "processor time of the services, the same two"),
    Goal("plan_median_error_ratio", AT_MOST, 0.1, "error of the offloaded time, median of the cases"),
    Goal("plan_worst_error_ratio", AT_MOST, 0.25, "error of the offloaded time, worst case"),
    Goal("plan_wrong_verdicts_count", AT_MOST, 0.0, "cases where the prediction has the wrong path win"),
    Goal("results_wrong_count", AT_MOST, 0.0, "rows with wrong results, of every benchmark"),
)  # fmt: skip
BY_NAME = {goal.name: goal for goal in GOALS}


def check(name: str, values: Iterable[float], subject: str = "") -> list[dict]:
    """The worst of the values against the goal of that name; none where nothing was measured. `subject`: whose."""
    goal, measured = BY_NAME[name], list(values)
    if not measured:
        return []
    possible = [value for value in measured if goal.can_be(value)]
    worst = goal.worst(possible or measured)
    met: bool | None = goal.met_by(worst)
    if not possible or (met and len(possible) < len(measured)):
        met, worst = None, goal.worst(value for value in measured if not goal.can_be(value))
    title = f"{subject}/{name}" if subject else name
    unjudged = NOISE if met is None else None
    return [{"name": title, "value": worst, "goal": goal.number, "met": met, "unjudged": unjudged}]


def judged(checks: Iterable[dict], launches: int) -> list[dict]:
    """One launch shows values and gives no verdict: others may differ by more than what is aimed at."""
    if launches > 1:
        return list(checks)
    return [each | {"met": None, "unjudged": each["unjudged"] or ONE_LAUNCH} for each in checks]


def summary(checks: Sequence[dict]) -> str:
    """The closing line of a benchmark."""
    if not checks:
        return "checks: none (nothing was measured that has a goal)"
    parts = [f"checks: {sum(each['met'] is True for each in checks)} of {len(checks)} met"]
    for title in ("not met", NOISE, ONE_LAUNCH):
        these = [each for each in checks if title == (each["unjudged"] or ("" if each["met"] else "not met"))]
        if these:
            parts.append(f"{title}: {', '.join(map(_said, these))}")
    return "; ".join(parts)


def _said(check: dict) -> str:
    return f"{check['name']} {check['value']:.4g} (goal: {BY_NAME[check['name'].rpartition('/')[2]].text})"
