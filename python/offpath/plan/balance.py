# SPDX-License-Identifier: BSD-3-Clause
"""`offpath plan balance`: what would tasks bring that may go to whoever waits?

A program whose ranks meet again and again lasts as long as the most loaded rank of each stretch: the sum of the largest
loads. Balanced, each stretch lasts as long as its mean load. What the loads do not explain (exchange, refinement) stays
as it is. So balancing brings at most seconds / (seconds - what lies between largest and mean)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from offpath.base import console, files
from offpath.base.tables import Table


@dataclass(frozen=True)
class Loads:
    seconds: float  # of the run
    stretches: Sequence[Sequence[float]]  # from one meeting of the ranks to the next: seconds of each one's work

    @property
    def longest_s(self) -> float:
        return sum(max(stretch) for stretch in self.stretches)

    @property
    def mean_s(self) -> float:
        return sum(sum(stretch) / len(stretch) for stretch in self.stretches)

    @property
    def imbalance(self) -> float:
        return self.longest_s / self.mean_s if self.mean_s else 1.0

    @property
    def standing_imbalance(self) -> float:
        """What moving ranks' shares once would leave: of the run as a whole."""
        of_ranks = [sum(loads) for loads in zip(*self.stretches)]
        return max(of_ranks) / self.mean_s if self.mean_s else 1.0

    def balanced_s(self, piece_s: float = 0.0, moved_s: float = 0.0) -> float:
        """With tasks of piece_s each, of which the last one may begin when all others have ended; every second of work
        that moves costs moved_s more."""
        rest, saved = self.seconds - self.longest_s, 0.0
        for stretch in self.stretches:
            mean = sum(stretch) / len(stretch)
            moving = sum(max(0.0, load - mean) for load in stretch)
            even = mean + moved_s * moving / len(stretch) + piece_s * (1 - 1 / len(stretch))
            saved += min(max(stretch), even)
        return rest + saved


def read(file: Path) -> Loads:
    """Raises UserError."""
    return files.read_json(file, "report of loads", f"Make one: amr --json {file}", _loads)


def _loads(run: dict) -> Loads:
    stretches = [[float(load) for load in stretch] for stretch in run["loads_s"]]
    loads = Loads(float(run["seconds"]), stretches)
    fitting = bool(stretches) and all(len(each) == len(stretches[0]) > 0 for each in stretches)
    usable = fitting and all(0 <= load < math.inf for each in stretches for load in each)
    if not usable or not 0 < loads.seconds < math.inf:
        raise ValueError("ranks come and go in it, or have loads that cannot be")
    return loads


def plan_command(
    report: Annotated[
        Path, typer.Option(help='JSON with "seconds" and "loads_s", lists of the ranks\' seconds: amr --json.')
    ],
    balanced: Annotated[
        Optional[Path], typer.Option(help="The same of a run that was balanced, to compare with.")
    ] = None,
    piece_ms: Annotated[float, typer.Option(min=0, help="How long a task is, in the loads' seconds.")] = 0.0,
    moved: Annotated[
        float, typer.Option(min=0, help="What a second of work costs more when it moves, in seconds.")
    ] = 0.0,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Write the results there.")] = None,
) -> None:
    """Say what balancing can bring at most to a program whose ranks have different loads, from one unbalanced run.

    The run needs a core for each rank: where ranks share one, others' work is taken for a rank's own. With --balanced
    the prediction is compared with what was measured.

    Example:

        offpath plan balance --report amr.json --piece-ms 0.5 --balanced balanced.json
    """
    loads = read(report)
    bound, foreseen = loads.balanced_s(), loads.balanced_s(piece_ms / 1e3, moved)
    result: dict[str, Any] = {
        "seconds": loads.seconds,
        "imbalance": loads.imbalance,
        "standing_imbalance": loads.standing_imbalance,
        "balanced_s": foreseen,
        "gain": loads.seconds / foreseen,
        "gain_at_most": loads.seconds / bound,
    }
    table = Table("", "seconds", "gain", box=None, pad_edge=False)
    table.add_row("as it was", f"{loads.seconds:.4f}", "")
    table.add_row("balanced, at most", f"{bound:.4f}", f"{result['gain_at_most']:.2f}")
    table.add_row("balanced, with these tasks", f"{foreseen:.4f}", f"{result['gain']:.2f}")
    if balanced is not None:
        measured = read(balanced).seconds
        result |= {"measured_s": measured, "measured_gain": loads.seconds / measured, "error": foreseen / measured - 1}
        table.add_row("balanced, measured", f"{measured:.4f}", f"{result['measured_gain']:.2f}")
    console.out.print(table)
    moves = "the load moves" if loads.imbalance > 1.1 * loads.standing_imbalance else "it stays where it is"
    console.out.print(f"imbalance {loads.imbalance:.2f}, of the run as a whole {loads.standing_imbalance:.2f}: {moves}")
    if balanced is not None:
        console.out.print(f"error of the prediction {result['error']:+.1%}")
    if json_file:
        files.write_json(json_file, result)
