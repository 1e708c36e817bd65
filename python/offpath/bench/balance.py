# SPDX-License-Identifier: BSD-3-Clause
"""What balancing of tasks brings, for `offpath bench tasks --labs`: an uneven program with it and without, in turns.

A piece of work is a wait of fixed length: it stands for an accelerator, or for a core that is elsewhere, since all
nodes of a lab share this machine's cores. Everything around it (services, executors, messages, memory) is real. The
same once more with pieces that compute (heat in a rod): they gain as far as this machine has a core for each rank.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from offpath.base import console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.tables import Table
from offpath.bench import goals
from offpath.lab import Lab

EVEN, LOADED, SLOW = "none", "loaded", "slow"
TIMES = 3  # as many pieces, or as slow, is one rank
OFF, ON = "off", "on"
WAITS, COMPUTES = "waits", "computes"  # what a piece does
LIMIT_S = 300


@dataclass
class Case:
    nodes: int
    ppn: int
    mpi: str
    uneven: str
    piece: str
    seconds: dict[str, list[float]] = field(default_factory=lambda: {OFF: [], ON: []})

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn

    @property
    def perfect_gain(self) -> float:
        """Of the unbalanced time by that of an even distribution."""
        if self.uneven == LOADED:
            return TIMES * self.ranks / (self.ranks + TIMES - 1)
        return TIMES * (self.ranks - 1 + 1 / TIMES) / self.ranks if self.uneven == SLOW else 1.0

    def row(self, even_s: float) -> dict:
        """`even_s`: of the even program, unbalanced."""
        off, on = (statistics.median(self.seconds[mode]) for mode in (OFF, ON))
        perfect_s = even_s * (TIMES / self.perfect_gain)
        return {
            "nodes": self.nodes, "ranks": self.ranks, "mpi": self.mpi, "uneven": self.uneven, "piece": self.piece,
            "cores": len(os.sched_getaffinity(0)), "off_s": off, "on_s": on, "off_all_s": self.seconds[OFF],
            "on_all_s": self.seconds[ON], "gain": off / on,
            "perfect": (even_s if self.uneven == EVEN else perfect_s) / on,
            "runs": len(self.seconds[ON]), "verified": True,  # a program with a wrong piece ends the command
        }  # fmt: skip


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
    labs: Sequence[tuple[int, int]], kinds: Sequence[str], pieces: Mapping[str, Sequence[str]], options: Sequence[str],
    runs: int,
) -> list[dict]:  # fmt: skip
    """`pieces`: the options of what pieces do."""
    rows = []
    for nodes, ppn in labs:
        with Lab(nodes=nodes, rate="1gbit") as lab:
            for mpi, piece in itertools.product(kinds, pieces):
                cases = [Case(nodes, ppn, mpi, uneven, piece) for uneven in (EVEN, LOADED, SLOW)]
                for _, case, mode in itertools.product(range(runs), cases, (OFF, ON)):
                    case.seconds[mode].append(_launch(lab, case, mode, [*pieces[piece], *options]))
                even_s = statistics.median(cases[0].seconds[OFF])
                rows += [case.row(even_s) for case in cases]
    return rows


def _launch(lab: Lab, case: Case, mode: str, options: Sequence[str]) -> float:
    """One worker with one executor for each rank, so that ranks of a node share nothing but through balancing."""
    env = {"OFFPATH_TASK_BALANCE": mode, "OFFPATH_TASK_EXECUTORS": "1", "OFFPATH_SERVICE_WORKERS": str(case.ppn)}
    with tempfile.TemporaryDirectory(prefix="speeds-", dir=lab.plan.state_dir) as folder:
        file = Path(folder) / "out.json"
        words = [str(paths().bench_program("balance", case.mpi)), "--functions", str(paths().require_tasks_functions())]
        words += ["--speeds", folder, "--uneven", case.uneven, "--times", str(TIMES), "--json", str(file), *options]
        done = lab.mpirun(case.mpi, case.ppn, words, False, env | {"OFFPATH_SERVICE_SHARE": "1"}, LIMIT_S)
        if done.returncode != 0:
            raise UserError(done.stderr.strip()[-500:] or "The benchmark of balancing has ended without a word.", 1)
        return json.loads(file.read_text())["total_s"]


def checks(rows: Sequence[dict]) -> list[dict]:
    """Of pieces that wait and of pieces that compute, which want a core for each rank."""
    uneven = [row for row in rows if row["uneven"] != EVEN]
    return [
        *goals.check("tasks_balance_gain_ratio", [row["gain"] for row in uneven]),
        *goals.check("tasks_balance_perfect_ratio", [row["perfect"] for row in uneven]),
        *goals.check("tasks_balance_even_ratio", [1 / row["gain"] for row in rows if row["uneven"] == EVEN]),
    ]


def show(rows: Sequence[dict]) -> None:
    titles = ("nodes", "ranks", "cores", "MPI", "a piece", "one rank is", "off s", "on s", "gain", "of perfect")
    table = Table(*titles, box=None, pad_edge=False)
    names = {EVEN: "as the others", LOADED: f"{TIMES}x loaded", SLOW: f"{TIMES}x slower"}
    for row in rows:
        seconds = [f"{min(all):.2f} {mid:.2f} {max(all):.2f}" for all, mid in _spread(row)]
        table.add_row(
            str(row["nodes"]), str(row["ranks"]), str(row["cores"]), row["mpi"], row["piece"], names[row["uneven"]],
            *seconds, f"{row['gain']:.2f}", f"{row['perfect']:.2f}",
        )  # fmt: skip
    console.out.print(table)


def _spread(row: dict) -> list[tuple[list[float], float]]:
    return [(row["off_all_s"], row["off_s"]), (row["on_all_s"], row["on_s"])]
