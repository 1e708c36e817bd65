# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench scale`: what more ranks and nodes cost, stage by stage, without and with Offpath."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated

import typer

from offpath.base import commands, handover
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_numbers
from offpath.bench.kit import Benchmark, Case, Site, Table, options, rows, turns
from offpath.bench.service_memory import Sampler
from offpath.places import asked, comparison
from offpath.places.comparison import Place

NATIVE, OFFPATH = "native", "offpath"
POLICY = "*:dpu"
FROM_RANKS = 64  # of a node: what a service takes by itself is little then
START_NS = 20e6  # for a service
SAME = ("mpi", "nodes", "ranks", "stage")


def _pairs(rows_here: Iterable[dict]) -> Iterator[tuple[dict, dict]]:
    """Of one stage: natively, and with Offpath."""
    found: dict = {}
    for row in _measured(rows_here):
        found.setdefault(tuple(row[name] for name in SAME), {})[row["mode"]] = row
    return ((pair[NATIVE], pair[OFFPATH]) for pair in found.values() if len(pair) == 2)


def _measured(rows_here: Iterable[dict]) -> list[dict]:
    """Not fits."""
    return [row for row in rows_here if "ranks" in row]


def _memory(rows_here: list[dict]) -> list[float]:
    return [row["beyond_kib"] for row in _measured(rows_here) if row["ranks"] >= FROM_RANKS and "beyond_kib" in row]


def _times(stage: str, allowed_ns: float) -> Callable[[list[dict]], list[float]]:
    return lambda rows_here: [
        (ours["first_ns"] - allowed_ns) / native["first_ns"]
        for native, ours in _pairs(rows_here)
        if native["stage"] == stage
    ]


BENCHMARK = Benchmark(
    [
        Table("{mpi:mpi}, {nodes} node(s): a job's stages, ms and KiB", [
            ("ranks", "{ranks}"), ("stage", "{stage}"), ("mode", "{mode}"), ("first", "{first_ns:ms}"),
            ("later", "{later_ns:ms}"), ("rank KiB", "{rank_pss_kib:.0f}"), ("service KiB", "{service_pss_kib:.0f}"),
            ("beyond", "{beyond_kib:.0f}"), ("threads", "{rank_threads_count:.0f}"),
            ("files", "{rank_descriptors_count:.0f}"), ("service's", "{service_descriptors_count:.0f}"),
        ], keys=3, strong=lambda row: row["mode"] == OFFPATH),
        Table("{mpi:mpi}, {nodes} node(s): exponents of growth with the ranks of a node", [
            ("stage", "{stage}"), ("mode", "{mode}"), ("first", "{first_exponent:.2f}"),
            ("later", "{later_exponent:.2f}"), ("rank KiB", "{rank_pss_exponent:.2f}"),
            ("service KiB", "{service_pss_exponent:.2f}"),
        ], of="fits", keys=2, note="0: it does not grow; 1: twice the ranks, twice as much; 2: four times."),
    ],
    {"scale_rank_kib": _memory, "scale_dup_ratio": _times("dup", 0), "scale_init_ratio": _times("init", START_NS)},
    subject=lambda row: row["mpi"],
)  # fmt: skip

app = commands.alone()


@app.command()
def scale_command(
    mpi: asked.Mpis = "both",
    ranks: Annotated[str, typer.Option(help="Ranks of each node.")] = "4,16,64",
    nodes: Annotated[str, typer.Option(help="Nodes; more than 1 are a lab.")] = "1",
    rate: asked.Rate = "1gbit",
    runs: asked.Runs = 3,
    json_file: options.JsonFile = None,
) -> None:
    """Measure what a job of many ranks takes: time, memory, threads and descriptors, stage by stage.

    The stages: MPI_Init, MPI_Comm_dup, MPI_Comm_split, reductions of 256 KiB and alltoalls of 1 KiB blocks on one and
    on eight communicators, messages of 1 MiB, windows. *first* is the first time, *later* the median of five more, of
    the slowest rank. Memory is proportional: what processes share counts in parts. *beyond*: of a rank with its part of
    the service, more than natively. Everything is offloaded; the service shares the ranks' cores. With more ranks than
    cores times say little: waiting ranks sleep.

    Examples:

        offpath bench scale

        offpath bench scale --mpi openmpi --nodes 1,4,16 --ranks 1 --json scale.json
    """
    kinds = comparison.chosen_mpis(mpi)
    node_counts = parse_numbers(nodes, "--nodes", most=64)
    rank_counts = parse_numbers(ranks, "--ranks", most=1024)
    options.check_files(json_file)
    if max(node_counts) > 1:
        options.require_lab("Several nodes are", rate)
    built(paths().preload_library)
    sites = [
        Site(
            [[Case({"mpi": kind, "nodes": count, "ranks": each, "mode": mode}, functools.partial(_launch, kind, mode))
              for mode in (NATIVE, OFFPATH)] for kind in kinds],
            functools.partial(comparison.place, count, each, rate, loopback=count == 1),
        )
        for count in node_counts
        for each in rank_counts
    ]  # fmt: skip
    meta = comparison.base_meta(kinds) | {"policy": POLICY} | turns.measure(sites, runs)
    found = with_memory_beyond(rows.of_cases(case for site in sites for case in site.cases))
    BENCHMARK.deliver({"meta": meta, "rows": found, "fits": fits(found)}, json_file)


def _launch(kind: str, mode: str, where: Place) -> list[dict]:
    offloads = mode == OFFPATH
    with handover.folder() as folder, Sampler(folder / "stage") as sampler:
        argv = [str(paths().bench_program("scale", kind)), "--stop", str(sampler.stop)]
        env = {"OFFPATH_POLICY": POLICY, **sampler.env} if offloads else {}
        output, _ = comparison.run_for_json(where, kind, argv, offloads, env)
    return [
        {**stage, **sampled, "verified": output["verified"]} for stage, sampled in zip(output["stages"], sampler.found)
    ]


def with_memory_beyond(found: list[dict]) -> list[dict]:
    """What a rank with its part of the service takes more than natively."""
    for native, ours in _pairs(found):
        service = ours["service_pss_kib"] / (ours["nodes"] * ours["ranks"])
        ours["beyond_kib"] = ours["rank_pss_kib"] + service - native["rank_pss_kib"]
    return found


def fits(found: Sequence[dict]) -> list[dict]:
    """Exponents e of value = c * ranks ** e, by least squares of the logarithms; of each stage that has several."""
    grouped: dict = {}
    for row in found:
        grouped.setdefault(tuple(row[name] for name in ("mpi", "nodes", "mode", "stage")), []).append(row)
    result = []
    for (kind, nodes, mode, stage), rows_here in grouped.items():
        fit = {"mpi": kind, "nodes": nodes, "mode": mode, "stage": stage}
        for name in ("first_ns", "later_ns", "rank_pss_kib", "service_pss_kib"):
            points = [(row["ranks"], row[name]) for row in rows_here if row.get(name)]
            if len({ranks for ranks, _ in points}) > 1:
                fit[name.rpartition("_")[0] + "_exponent"] = exponent(points)
        if len({row["ranks"] for row in rows_here}) > 1:
            result.append({**fit, "verified": all(row["verified"] for row in rows_here)})
    return result


def exponent(points: Sequence[tuple[float, float]]) -> float:
    logs = [(math.log(x), math.log(y)) for x, y in points]
    middle_x, middle_y = (sum(values) / len(logs) for values in zip(*logs))
    return sum((x - middle_x) * (y - middle_y) for x, y in logs) / sum((x - middle_x) ** 2 for x, _ in logs)
