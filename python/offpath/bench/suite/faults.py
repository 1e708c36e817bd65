# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench faults`: what becomes of real programs when something happens to one of their services."""

from __future__ import annotations

import contextlib
import functools
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Annotated, Optional

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.oldest import StrEnum
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_numbers
from offpath.bench.fault_kills import FAULTS, Kill, Program, Series
from offpath.bench.fault_verdicts import FINE, VERDICTS, Ended
from offpath.bench.kit import Benchmark, Case, Site, Table, options, turns
from offpath.places import asked, comparison
from offpath.places.comparison import LoopbackPlace, Place

RANDOM = "random"
# Each takes one to three seconds, on one node and on several.
PROGRAMS = (
    Program(RANDOM, "random collectives", "bench", "faults", ("--seconds", "1.5"),
            with_openmpi=("--persistent",)),  # MPICH's own persistent collectives crash without us
    Program("fft3d", "MPI_Ialltoallv", "apps", "fft3d", ("--n", "64", "--repeats", "100"),
            ("--n", "32", "--repeats", "100")),
    Program("halo3d", "messages", "apps", "halo3d", ("--sweeps", "400"), ("--points", "64", "--sweeps", "200"),
            policy="*:dpu,send:4K-inf:dpu"),
    Program("bspmm", "windows", "apps", "bspmm", ("--check", "--tile", "32", "--repeats", "20"),
            ("--check", "--tile", "32", "--tiles", "8", "--repeats", "10")),
)  # fmt: skip
# What the program draws from (bench/faults/operation.hpp).
COLLECTIVES = (
    "ialltoall", "ialltoallv", "iallreduce", "ibcast", "iallgather", "ireduce", "igather", "iscatter",
    "ireduce_scatter_block",
)  # fmt: skip
BY_NAME = {program.name: program for program in PROGRAMS}
FaultChoice = StrEnum("FaultChoice", {name: name for name in FAULTS})
START_S, RUN_S = 2.0, 2.0  # for the estimate only


BENCHMARK = Benchmark([
    Table("{mpi:mpi}: what became of programs; waits in s", [
        ("program", "{program}"), ("nodes", "{nodes}"), ("kills", "{kills_count}"),
        *((verdict, f"{{{verdict}_count}}") for verdict in VERDICTS), ("late", "{late_count}"),
        ("median", "{blackout_median_s:.3f}"), ("99 %", "{blackout_p99_s:.3f}"),
        ("max", "{blackout_max_s:.3f}"), ("unkilled", "{unkilled_wait_s:.3f}"),
    ], note="right: it ended well and its own check passed. error: one of Offpath's ended it. late: kills that found "
            "no service, which were repeated. Waits: the longest of a program that ended right."),
    Table("Not right", [
        ("program", "{mpi} {program}, nodes: {nodes}"), ("kill", "{number}"), ("after s", "{moment_s:.3f}"),
        ("verdict", "{verdict}"), ("said", "{said}"),
    ], of="kills", where=lambda kill: kill["verdict"] not in FINE),
])  # fmt: skip

app = commands.alone()


@app.command()
def faults_command(
    kills: Annotated[int, typer.Option(min=1, help="Of each program, with each MPI, on each number of nodes.")] = 5,
    mpi: asked.Mpis = "both",
    nodes: Annotated[
        Optional[str],
        typer.Option(
            help="1: this machine; more: a lab of so many (which needs root). Default: 1,2.", show_default=False
        ),
    ] = None,
    programs: Annotated[str, typer.Option(help="Which, separated by commas.")] = ",".join(BY_NAME),
    collectives: Annotated[
        Optional[str], typer.Option(help="Those of the program random. Default: all it has.", show_default=False)
    ] = None,
    fault: Annotated[FaultChoice, typer.Option(help="What happens to a service.")] = FaultChoice.kill,
    return_errors: Annotated[
        bool, typer.Option("--return-errors", help="The program random is told of errors, and goes on.")
    ] = False,
    ranks: Annotated[int, typer.Option(min=2, help="Ranks of each program, spread over the nodes.")] = 4,
    rate: asked.Rate = "1gbit",
    seed: Annotated[
        Optional[int], typer.Option(min=0, help="Of the moments. Default: drawn, and written.", show_default=False)
    ] = None,
    patience: Annotated[
        float, typer.Option(min=1, help="A program that takes so many seconds more than it should stands.")
    ] = 60.0,
    json_file: options.JsonFile = None,
) -> None:
    """Kill services of running programs, each at a random moment of its life, and see what becomes of them.

    A launch is a program with everything offloaded, and one fault: *kill* (SIGKILL); *stop* (SIGSTOP; it counts as
    lost after two seconds of silence); *break*: all connections of a service to others are reset, on several nodes;
    *replace* (`offpath service restart`), which no program may notice: a warning counts as an error, and what a
    program waits longer than *unkilled* is the pause. Services share the ranks' cores. The programs check their
    results and say their longest single wait. *random* does random collectives on two communicators, several under
    way, and ranks that wait for them while others block in other calls; *fft3d* MPI_Ialltoallv; *halo3d* messages;
    *bspmm* one-sided operations. Each runs once without a fault. An error ends a program, as MPI does by default;
    with --return-errors *random* counts it, goes on, and must be right in all else.

    Verdicts: *right*; *error*, an error of Offpath, and nothing was wrong; *wrong*, wrong results, a
    crash, or an end that nobody explains; *stood*, it did not end. Exit status 1 if any was wrong or stood. The same
    seed gives the same moments, as far as a program takes as long again.

    Examples:

        offpath bench faults --kills 20 --json faults.json

        offpath bench faults --fault replace --kills 50 --nodes 1

        offpath bench faults --programs random --collectives iallreduce,ibcast --nodes 1 --mpi mpich --seed 7
    """
    kinds = comparison.chosen_mpis(mpi)
    chosen = [BY_NAME[name] for name in options.names(programs, BY_NAME, "a program")]
    breaks = fault.value == "break"
    counts = parse_numbers(nodes or ("2" if breaks else "1,2"), "--nodes", most=64)
    if breaks and 1 in counts:
        raise UserError("--fault break needs several nodes (one has no connections). Try --nodes 2.")
    for count in counts:
        if ranks % count:
            raise UserError(f"{ranks} ranks cannot be spread evenly over {count} nodes. Change --ranks or --nodes.")
    options.check_files(json_file)
    more: dict[str, list[str]] = {RANDOM: ["--return-errors"] if return_errors else []}
    if collectives is not None:
        more[RANDOM] += ["--kinds", ",".join(options.names(collectives, COLLECTIVES, "a collective"))]
    if max(counts) > 1:
        options.require_lab("Several nodes are", rate)
    built(paths().preload_library)
    built(paths().service)
    seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    sites, found = [], []
    for count in counts:
        these = [
            Series(program, kind, count, seed, patience, more.get(program.name, ()), FAULTS[fault.value])
            for kind in kinds
            for program in chosen
        ]
        rounds = [_round(series) for series in these]
        found += rounds
        sites.append(Site(rounds, functools.partial(_place, count, ranks, rate)))
    launches = len(found) * (kills + 1)
    meta = comparison.base_meta(kinds) | turns.measure(sites, kills, launches * (START_S + RUN_S))
    meta |= {"seed": seed, "node_counts": counts, "ranks": ranks, "rate": rate}
    meta |= {"programs": [program.name for program in chosen]}
    meta |= {"collectives": collectives, "return_errors": return_errors, "fault": fault.value}
    measured = [(unkilled, killed) for unkilled, killed in found if killed.launches]
    rows = [row_of(killed.labels, unkilled.launches[0], killed.launches) for unkilled, killed in measured]
    one_by_one = [killed.labels | kill.row for _, killed in found for kill in killed.launches]
    BENCHMARK.deliver({"meta": meta, "rows": rows, "kills": one_by_one}, json_file)


def _place(nodes: int, ranks: int, rate: str) -> contextlib.AbstractContextManager[Place]:
    if nodes == 1:
        return contextlib.nullcontext(LoopbackPlace(ranks))
    return comparison.place(nodes, ranks // nodes, rate, loopback=False)


def _round(series: Series) -> tuple[Case, Case]:
    """Once without a kill, which says when to kill."""
    return Case(series.labels, series.unkilled, once=True), Case(series.labels, series.killed)


def row_of(labels: Mapping, unkilled: Ended, kills: Sequence[Kill]) -> dict:
    ended = [kill.ended for kill in kills]
    waits = sorted(each.longest_wait_s for each in ended if each.longest_wait_s is not None)
    row = {**labels, "kills_count": len(kills)}
    row |= {f"{verdict}_count": sum(each.verdict == verdict for each in ended) for verdict in VERDICTS}
    row |= {"late_count": sum(kill.late for kill in kills), "unkilled_wait_s": unkilled.longest_wait_s}
    if waits:
        row |= {
            "blackout_median_s": statistics.median(waits), "blackout_max_s": waits[-1],
            "blackout_p99_s": waits[math.ceil(0.99 * len(waits)) - 1],
        }  # fmt: skip
    return row | {"verified": all(each.verdict in FINE for each in ended)}
