# SPDX-License-Identifier: BSD-3-Clause
"""The table at the top of docs/performance.md: each goal, the worst value of all that was published, and where."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence

import measured
from measured import ROOT, label, numbers

sys.path.insert(0, str(ROOT / "python"))

from offpath.bench import goals  # noqa: E402
from offpath.bench.suite import collectives  # noqa: E402

PICTURE = ROOT / "docs" / "figures" / "collectives.json"
LONG = ("1 MiB", "4 MiB")  # goals are of these
Found = Iterator[tuple[dict, float]]


def each(*names: str, **where) -> Callable[[list[dict]], Found]:
    """These fields of the rows in which others have such a value, or one of such."""

    def find(rows: list[dict]) -> Found:
        for row, name in itertools.product(rows, names):
            if _fits(row, where):
                which = {"field": name} if len(names) > 1 else {}
                yield from ((row | which, value) for value in numbers(row.get(name)))

    return find


def calculated(function: Callable[[dict], float | None], **where) -> Callable[[list[dict]], Found]:
    def find(rows: list[dict]) -> Found:
        values = ((row, function(row)) for row in rows if _fits(row, where))
        return ((row, value) for row, value in values if value is not None)

    return find


def quotient(above: str, below: str, **where) -> Callable[[list[dict]], Found]:
    return calculated(lambda row: row[above] / row[below], **where)


def against(of: str, field: str, to: str, name: str, same: Sequence[str] = (), under: str = "", **where) -> Callable:
    """The field in rows whose `name` begins with `of`, by that (or `under`) in the row of `to` with the same others."""

    def find(rows: list[dict]) -> Found:
        for row in rows:
            if not row[name].startswith(of) or not _fits(row, where):
                continue
            for other in rows:
                if other[name] == to and all(other[key] == row[key] for key in same):
                    below = numbers(other[under or field])
                    yield from ((row, value / below[-1]) for value in numbers(row[field]))

    return find


def _fits(row: dict, where: dict) -> bool:
    return all(row.get(name) in ((wanted,) if isinstance(wanted, str) else wanted) for name, wanted in where.items())


def percent(*names: str) -> Callable[[list[dict]], Found]:
    return lambda rows: ((row, abs(value) / 100) for row, value in each(*names)(rows))


def checked(goal: str) -> Callable[[list[dict]], Found]:
    return each("value", check=goal)


def best_side(row: dict) -> float | None:
    sides = ("off_path_regions", "off_path_tasks", "hybrid_regions", "hybrid_tasks", "off_path", "hybrid")
    return max((value for side in sides for value in numbers(row.get(side))), default=None)


def auto_ratio(row: dict) -> float:
    return row["auto"] / min(1.0, row["lz4"], row["zstd"])


def solver(theirs: str, ours: str, setting: str) -> Callable[[list[dict]], Found]:
    """With a share of the product, by PETSc's on its ranks."""

    def find(rows: list[dict]) -> Found:
        times = {(row["setting"], row["solver"]): row for row in rows}
        own = next(row for (where, who), row in times.items() if "phi auto" in where and who == ours)
        yield own, own["measured_64_ms"] / times[setting, theirs]["measured_64_ms"]

    return find


OFFLOADED = ("default", "`*:dpu`")
SLOW_RANK = {"uneven": ("3x loaded", "3x slower")}
ALLGATHER = {"of": "multicast", "to": "ring", "name": "by"}
BOTH = [("offpath_cg_ms", "cg_ms"), ("offpath_pipecg_ms", "pipecg_ms")]
OPENMP = ("openmp_empty_region_us", "openmp_map_us", "openmp_bulk_to_ratio", "openmp_bulk_from_ratio",
          "openmp_overlap_ratio", "openmp_halo_ratio")  # fmt: skip

# Of a goal: measurements, and which of their values.
READINGS: list[tuple[str, str, Callable[[list[dict]], Found]]] = [
    ("alltoall_gain_ratio", "alltoall", each("gain", per_peer=LONG)),
    ("alltoall_efficiency_250mbit_ratio", "alltoall", each("efficiency", per_peer=LONG, rate="250 Mbit/s")),
    ("alltoall_efficiency_1gbit_ratio", "alltoall", each("efficiency", per_peer=LONG, rate="1 Gbit/s")),
    ("alltoall_t_pure_ratio", "alltoall", quotient("t_pure_ms", "host_t_pure_ms", per_peer=LONG)),
    ("collectives_efficiency_250mbit_ratio", "collectives-250mbit", each("efficiency")),
    ("collectives_efficiency_250mbit_ratio", "collectives-more-ranks", each("efficiency")),
    ("collectives_efficiency_250mbit_ratio", "collectives-dpu-slower-wire",
     each("cores_efficiency", wire="250, 500 Mbit/s", total=LONG)),
    ("collectives_efficiency_1gbit_ratio", "collectives-1gbit", each("efficiency")),
    ("collectives_efficiency_1gbit_ratio", "collectives-fabrics", each("tcp_efficiency", "ucx_efficiency")),
    ("collectives_efficiency_1gbit_ratio", "collectives-dpu-2gbit", each("efficiency", placement="cores", total=LONG)),
    ("collectives_efficiency_1gbit_ratio", "collectives-dpu-slower-wire",
     each("cores_efficiency", wire="1, 2 Gbit/s", total=LONG)),
    ("collectives_gain_ratio", "collectives-250mbit", each("best_peer_gain")),
    ("collectives_gain_ratio", "collectives-1gbit", each("best_peer_gain")),
    ("collectives_gain_ratio", "collectives-more-ranks",
     calculated(lambda row: min(row["host_ms"], row["tests_ms"]) / row["offpath_ms"])),
    ("collectives_gain_ratio", "collectives-fabrics", calculated(lambda row: 1 / max(numbers(row["tcp_over_tests"])))),
    ("collectives_gain_ratio", "collectives-fabrics", calculated(lambda row: 1 / max(numbers(row["ucx_over_tests"])))),
    ("collectives_gain_ratio", "one-node", each("gain_1m", "gain_4m")),
    ("collectives_gain_ratio", "progress-threads",
     calculated(lambda row: min(row["tests_ms"], row["thread_ms"], row["yield_ms"]) / row["offpath_ms"])),
    ("collectives_unchanged_gain_ratio", "progress-threads", each("unchanged_gain")),
    *(("collectives_unchanged_gain_ratio", name,
       calculated(lambda row: min(row["host_ms"], row["async_ms"]) / row["offpath_ms"] if row["async_ms"] else None))
      for name in ("collectives-250mbit", "collectives-1gbit")),
    ("collectives_dpu_t_pure_ratio", "collectives-dpu-2gbit",
     against("DPUs", "t_pure_ms", "cores", "placement", same=["total"], total=LONG)),
    ("collectives_dpu_t_pure_ratio", "collectives-dpu-slower-wire", each("t_pure_ratio", total=LONG)),
    ("collectives_dpu_efficiency_ratio", "collectives-dpu-2gbit", each("efficiency", placement="DPUs", total=LONG)),
    ("collectives_dpu_efficiency_ratio", "collectives-dpu-slower-wire", each("dpu_efficiency", total=LONG)),
    ("collectives_dpu_efficiency_ratio", "collectives-dpu-later", each("efficiency")),
    ("pt2pt_efficiency_1gbit_ratio", "pt2pt", each("efficiency")),
    ("pt2pt_gain_ratio", "pt2pt", each("best_peer_gain")),
    ("adapt_phase_ratio", "adapt", each("over_best", phase=("hides", "talks"))),
    ("adapt_phase_ratio", "adapt-slower-machine", each("over_best", phase=("hides", "talks"))),
    ("adapt_overall_ratio", "adapt", each("over_best", phase="all")),
    ("adapt_overall_ratio", "adapt-slower-machine", each("over_best", phase="all")),
    ("guest_late_ratio", "guest", each("late_ratio", mode=OFFLOADED)),
    ("guest_late_ms", "guest", each("late_ms", mode=OFFLOADED)),
    ("guest_default_rounds_ratio", "guest", each("rounds_ratio", mode="default")),
    ("guest_dpu_rounds_ratio", "guest", each("rounds_ratio", mode="`*:dpu`")),
    ("scale_rank_kib", "scale", each("beyond_kib", ranks=(64,))),
    ("scale_dup_ratio", "scale", each("dup_ratio")),
    ("scale_init_ratio", "scale", each("init_ratio")),
    ("onesided_computing_ratio", "onesided", each("computing_ratio")),
    ("onesided_computing_ratio", "onesided-shmem", each("computing_ratio")),
    ("bspmm_gain_ratio", "bspmm", each("gain")),
    ("bspmm_longer_ratio", "bspmm", each("over_limit")),
    ("bspmm_gain_ratio", "bspmm-tasks", each("gain", way="communication")),
    ("bspmm_both_gain_ratio", "bspmm-tasks", each("gain", way="both")),
    ("bspmm_longer_ratio", "bspmm-tasks", each("over_longer", way=("communication", "both"))),
    ("halo3d_gain_ratio", "halo3d", each("gain")),
    ("halo3d_gain_ratio", "halo3d-tiles", each("gain")),
    ("halo3d_error_ratio", "halo3d-tiles", each("error")),
    *((goal, name, checked(goal)) for goal in OPENMP for name in ("openmp", "openmp-shared")),
    *((goal, "krylov", against("phi auto", ours, setting, "setting", under=theirs))
      for goal, setting in (("krylov_same_ranks_ratio", "same rank, its core alone"),
                            ("krylov_all_cores_ratio", "all (2) cores as ranks"))
      for ours, theirs in BOTH),
    *(("krylov_same_ranks_ratio", "krylov-latency", quotient(ours, theirs)) for ours, theirs in BOTH),
    *((goal, "krylov-prediction", solver(own, f"offpath_{own}", setting))
      for goal, setting in (("krylov_same_ranks_ratio", "same rank"), ("krylov_all_cores_ratio", "two ranks"))
      for own in ("cg", "pipecg")),
    ("krylov_same_ranks_ratio", "krylov-lab", quotient("offpath_ms", "petsc_ms")),
    ("krylov_same_ranks_ratio", "krylov-onloading",
     calculated(lambda row: min(row["all_ms"], row["leader_ms"]) / row["pipecg_ms"])),
    ("minimd_gain_ratio", "minimd", calculated(best_side)),
    ("minimd_gain_ratio", "minimd-two-nodes", calculated(best_side)),
    ("minimd_gain_ratio", "minimd-knee", calculated(best_side, slower=(1.0,))),
    ("minimd_error_ratio", "minimd", percent("off_path_regions_error", "off_path_tasks_error", "hybrid_regions_error",
                                             "hybrid_tasks_error")),
    ("minimd_error_ratio", "minimd-knee", percent("off_path_error", "hybrid_error")),
    ("tasks_empty_us", "tasks", each("awaited_us")),
    ("tasks_far_ratio", "tasks-dpu", each("ratio")),
    ("tasks_balance_gain_ratio", "tasks-balance", each("openmpi_gain", "mpich_gain", **SLOW_RANK)),
    ("tasks_balance_perfect_ratio", "tasks-balance", each("openmpi_perfect", "mpich_perfect", **SLOW_RANK)),
    *(("tasks_balance_even_ratio", "tasks-balance",
       quotient(f"{mpi}_on_s", f"{mpi}_off_s", uneven="as the others"))
      for mpi in ("openmpi", "mpich")),
    ("tasks_piece_us", "tasks", calculated(lambda row: 1e6 / row["per_second"])),
    ("tasks_piece_us", "tasks-dpu", calculated(lambda row: 1e6 / row["per_second_least"])),
    ("training_batches_gain_ratio", "training-epochs", each("gain", way="O-DA: batches by executors")),
    ("training_batches_gain_ratio", "training-less", each("gain", way="O-DA")),
    ("training_batches_gain_ratio", "training-placements", each("cores_gain", "dpu_gain", "node_gain", way="O-DA")),
    ("training_both_gain_ratio", "training-epochs", each("gain", way="O-Hy: both")),
    ("training_both_gain_ratio", "training-less", each("gain", way="O-Hy")),
    ("training_both_gain_ratio", "training-placements", each("cores_gain", "dpu_gain", "node_gain", way="O-Hy")),
    ("training_workers_ratio", "training-epochs",
     against("O-DA", "epoch_s", "torch's DataLoader, one worker", "way")),
    ("training_gradients_gain_ratio", "training-gradients", each("gain")),
    ("training_sharded_gain_ratio", "training-sharded", each("gain", way="offpath, overlap")),
    ("compression_auto_ratio", "compression-transfers", calculated(auto_ratio)),
    *((goal, name, against(field=field, same=same, collective="iallgather", **ALLGATHER))
      for goal, field in (("multicast_time_ratio", "time_ms"), ("multicast_cpu_ratio", "service_ms"))
      for name, same in (("multicast-8-nodes", ["collective"]), ("multicast-epyc", ["collective", "nodes"]))),
    *((goal, "multicast-all-senders", against(field=field, same=["total"], **ALLGATHER))
      for goal, field in (("multicast_time_ratio", "time_ms"), ("multicast_cpu_ratio", "service_ms"))),
    ("plan_median_error_ratio", "plan-summary", percent("median")),
    ("plan_worst_error_ratio", "plan-summary", percent("worst")),
    ("plan_worst_error_ratio", "plan-messages", percent("error")),
    ("plan_wrong_verdicts_count", "plan-summary", each("wrong")),
]  # fmt: skip

LIMITS = json.loads((measured.FOLDER.parent / "limits.json").read_text())


def values(goal: str) -> Iterator[tuple[float, str, int]]:
    """All that was published: the value, where, of how many launches."""
    for name in dict.fromkeys(name for each_goal, name, _ in READINGS if each_goal == goal):
        result = measured.load(name)
        for read in (read for each_goal, each_name, read in READINGS if (each_goal, each_name) == (goal, name)):
            for row, value in read(result["rows"]):
                yield float(value), f"{result['about']}: {label(_titled(row, result))}", int(result["launches"])
    picture = json.loads(PICTURE.read_text())
    for check in collectives.BENCHMARK.checks(picture):
        if check["name"].endswith(f"/{goal}"):
            yield check["value"], "250 Mbit/s, the launches of README's picture", picture["meta"]["runs"]
    if goal == "results_wrong_count":
        yield 0.0, "all of them, or they would not be here", 2


def _titled(row: dict, result: dict) -> dict:
    """The field that a value is of is called as the table's column is, and as it is where several are called so."""
    if "field" not in row:
        return row
    titles = [title for title, _ in result["columns"]]
    of_field = [title for title, template in result["columns"] if f"{{{row['field']}" in template]
    own = of_field[0] if of_field and titles.count(of_field[0]) == 1 else row["field"].replace("_", " ")
    return row | {"field": own}


def row_of(goal: goals.Goal) -> str:
    found = list(values(goal.name))
    if not found:
        return f"| {goal.cells} | - | - | not measured |  |"
    (check,) = goals.check(goal.name, [value for value, _, _ in found])
    value, where, launches = next(each for each in found if each[0] == check["value"])
    met = check["unjudged"] or ("yes" if check["met"] else "no")
    if launches == 1 and not check["unjudged"]:
        met = goals.ONE_LAUNCH if check["met"] else "no (one launch)"
    return f"| {goal.cells} | {shown(value, goal)} | {where} | {met} | {LIMITS.get(goal.name, '')} |"


def shown(value: float, goal: goals.Goal) -> str:
    """Three digits, four near the goal."""
    text = f"{value:.{4 if abs(value - goal.number) < 0.01 * goal.number else 3}g}"
    return f"{value:.2f}" if goal.name.endswith("_ratio") and len(text.partition(".")[2]) < 2 else text


def table() -> str:
    titles = "| goal | aimed at | of what | worst | where | met | what limits it |"
    return "\n".join([titles, "|---|---|---|---|---|---|---|", *map(row_of, goals.GOALS)])
