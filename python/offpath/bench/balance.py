# SPDX-License-Identifier: BSD-3-Clause
"""What balancing of tasks brings, for `offpath bench tasks --labs`: an uneven program with it and without, in turns.

A piece of work is a wait of fixed length: it stands for an accelerator, or for a core that is elsewhere, since all
nodes of a lab share this machine's cores. Everything around it (services, executors, messages, memory) is real. The
same once more with pieces that compute (heat in a rod): they gain as far as this machine has a core for each rank.
"""

from __future__ import annotations

import functools
import itertools
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence

from offpath.base import handover
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench.kit import Benchmark, Case, Site, Table, turns
from offpath.places import comparison
from offpath.places.comparison import LabPlace

EVEN, LOADED, SLOW = "none", "loaded", "slow"
TIMES = 3  # as many pieces, or as slow, is one rank
OFF, ON = "off", "on"
WAITS, COMPUTES = "waits", "computes"  # what a piece does
NAMES = {EVEN: "as the others", LOADED: f"{TIMES}x loaded", SLOW: f"{TIMES}x slower"}


def _seconds(mode: str) -> object:
    return lambda row: " ".join(
        f"{value:.2f}" for value in (min(row[f"{mode}_all_s"]), row[f"{mode}_s"], max(row[f"{mode}_all_s"]))
    )


BENCHMARK = Benchmark(
    [Table("Tasks with balancing and without", [
        ("nodes", "{nodes}"), ("ranks", "{ranks}"), ("cores", "{cores}"), ("MPI", "{mpi}"), ("a piece", "{piece}"),
        ("one rank is", lambda row: NAMES[row["uneven"]]), ("off s", _seconds(OFF)), ("on s", _seconds(ON)),
        ("gain", "{gain:.2f}"), ("of perfect", "{perfect:.2f}"),
    ])],
    {  # of pieces that wait and of pieces that compute, which want a core for each rank
        "tasks_balance_gain_ratio": lambda rows: [row["gain"] for row in rows if row["uneven"] != EVEN],
        "tasks_balance_perfect_ratio": lambda rows: [row["perfect"] for row in rows if row["uneven"] != EVEN],
        "tasks_balance_even_ratio": lambda rows: [1 / row["gain"] for row in rows if row["uneven"] == EVEN],
    },
)  # fmt: skip


def parse(text: str) -> list[tuple[int, int]]:
    """ "2x2,4x1": nodes by ranks on each. Raises UserError."""
    found = []
    for word in text.split(","):
        nodes, _, ppn = word.partition("x")
        if not (nodes.isdecimal() and ppn.isdecimal()) or int(nodes) < 1 or int(ppn) < 1:
            raise UserError(f"--labs '{word}' is not usable. Write it like 4x1 or 2x2: nodes by ranks of each.")
        found.append((int(nodes), int(ppn)))
    return found


def measure(
    labs: Sequence[tuple[int, int]], kinds: Sequence[str], pieces: Mapping[str, Sequence[str]], runs: int
) -> dict:
    """`pieces`: the options of what pieces do."""
    sites = []
    for nodes, ppn in labs:
        rounds = [
            [_case(nodes, ppn, mpi, piece, uneven, mode, pieces[piece])
             for uneven in (EVEN, LOADED, SLOW) for mode in (OFF, ON)]
            for mpi, piece in itertools.product(kinds, pieces)
        ]  # fmt: skip
        sites.append(Site(rounds, functools.partial(comparison.place, nodes, ppn, "1gbit", False)))
    meta = comparison.base_meta(kinds) | turns.measure(sites, runs)
    return {"meta": meta, "rows": [row for site in sites for cases in site.rounds for row in _rows(cases)]}


def _case(nodes: int, ppn: int, mpi: str, piece: str, uneven: str, mode: str, options: Sequence[str]) -> Case:
    labels = {"nodes": nodes, "ranks": nodes * ppn, "mpi": mpi, "uneven": uneven, "piece": piece}
    return Case({**labels, "balance": mode}, functools.partial(_launch, ppn, mpi, uneven, mode, options))


def _launch(ppn: int, mpi: str, uneven: str, mode: str, options: Sequence[str], where: LabPlace) -> float:
    """One worker with one executor for each rank, so that ranks of a node share nothing but through balancing."""
    env = {"OFFPATH_TASK_BALANCE": mode, "OFFPATH_TASK_EXECUTORS": "1", "OFFPATH_SERVICE_WORKERS": str(ppn),
           "OFFPATH_SERVICE_SHARE": "1"}  # fmt: skip
    with handover.folder(where.lab.plan.state_dir / "speeds") as folder:
        words = [str(paths().bench_program("balance", mpi)), "--functions", str(paths().tasks_functions)]
        words += ["--speeds", str(folder), "--uneven", uneven, "--times", str(TIMES), *options]
        return comparison.run_for_json(where, mpi, words, False, env)[0]["total_s"]


def _rows(cases: Sequence[Case]) -> Iterator[dict]:
    """Of each kind of unevenness, where both modes have been measured and the even program without balancing."""
    even = cases[0].launches
    for off, on in zip(cases[::2], cases[1::2]):
        if even and off.launches and on.launches:
            labels = {name: value for name, value in off.labels.items() if name != "balance"}
            yield {**labels, **_row(labels, off.launches, on.launches, statistics.median(even))}


def _row(labels: Mapping, off: list[float], on: list[float], even_s: float) -> dict:
    off_s, on_s = statistics.median(off), statistics.median(on)
    perfect_s = even_s * (1 if labels["uneven"] == EVEN else TIMES / perfect_gain(labels["uneven"], labels["ranks"]))
    return {
        "cores": len(os.sched_getaffinity(0)), "off_s": off_s, "on_s": on_s, "off_all_s": off, "on_all_s": on,
        "gain": off_s / on_s, "perfect": perfect_s / on_s,
        "runs": len(on), "verified": True,  # a program with a wrong piece ends with an error
    }  # fmt: skip


def perfect_gain(uneven: str, ranks: int) -> float:
    """Of the unbalanced time by that of an even distribution."""
    return TIMES * ranks / (ranks + TIMES - 1) if uneven == LOADED else TIMES * (ranks - 1 + 1 / TIMES) / ranks
