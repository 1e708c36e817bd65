# SPDX-License-Identifier: BSD-3-Clause
"""Gives work back to the host where the DPU would be what the iteration waits for."""

from collections.abc import Mapping

from offpath.split.costs import Costs
from offpath.split.dominant import DPU, HOST
from offpath.split.oplist import OperationList
from offpath.split.passes import unfused
from offpath.split.prediction import predict
from offpath.split.program import assemble

_WORTH = 1e-3  # a move has to shorten the iteration by this share, so that rounding moves nothing


def balance(oplist: OperationList, sides: Mapping[int, str], costs: Costs) -> dict[int, str]:
    """Moves one statement at a time to the host, always the one that shortens the predicted iteration most.

    Fusion comes later and is not looked at here. Ends after at most one move per statement.
    """
    passes = unfused(oplist)

    def seconds(chosen: Mapping[int, str]) -> float:
        return predict(assemble(oplist, chosen, passes, costs), costs).total_s

    best, chosen = seconds(sides), dict(sides)
    while True:
        moves = [chosen | {index: HOST} for index, side in chosen.items() if side == DPU]
        times = [(seconds(move), number) for number, move in enumerate(moves)]
        if not times or min(times)[0] > best * (1 - _WORTH):
            return chosen
        best, number = min(times)
        chosen = moves[number]
