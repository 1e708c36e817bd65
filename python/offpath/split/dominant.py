# SPDX-License-Identifier: BSD-3-Clause
"""Which statements stay on the host: the dominant cycle through preconditioner and matrix-vector product."""

from __future__ import annotations

from collections.abc import Mapping

from offpath.split.flow import flow_graph
from offpath.split.oplist import OPERATORS, Kind, OperationList

HOST, DPU = "host", "dpu"
MAX_DISTANCE = 3  # iterations that a path may cross


def dominant_path(oplist: OperationList, weights: Mapping[int, float], source: int, sink: int) -> list[int]:
    """The heaviest of all simple paths from `source` to `sink` that cross the fewest iterations; empty: there is none.

    Within an iteration the graph has no cycle, so dynamic programming over the order of the list finds what an
    enumeration of all simple paths would: O(edges), at most MAX_DISTANCE iterations unrolled.
    """
    graph = flow_graph(oplist)
    count = len(oplist.iteration)
    best: dict[tuple[int, int], tuple[float, tuple[int, int] | None]] = {(0, source): (weights[source], None)}
    for copy in range(MAX_DISTANCE + 1):
        for node in range(count):
            for before, _, distance in graph.in_edges(node, data="distance"):
                known = best.get((copy - distance, before))
                if known and (copy, node) != (0, source):
                    candidate = (known[0] + weights[node], (copy - distance, before))
                    if (copy, node) not in best or candidate[0] > best[copy, node][0]:
                        best[copy, node] = candidate
        if (copy, sink) in best and (copy, sink) != (0, source):
            return _walk_back(best, (copy, sink))
    return []


def _walk_back(best, at) -> list[int]:
    path = []
    while at:
        path.append(at[1])
        at = best[at][1]
    return path[::-1]


def dominant_cycle(oplist: OperationList, weights: Mapping[int, float]) -> set[int]:
    """Preconditioners and matrix-vector products, and the dominant paths from each to each of the other kind.

    The way there (preconditioner to product) is the published scheme's dominant path. The way back closes the
    recurrence through loop-carried values: what lies on it would otherwise travel to the DPU and back in every
    iteration, and the host would wait for it.
    """
    ends = {kind: [i for i, each in enumerate(oplist.iteration) if each.kind == kind] for kind in OPERATORS}
    chosen = {index for indices in ends.values() for index in indices}
    for preconditioner in ends[Kind.PRECONDITION]:
        for product in ends[Kind.MATVEC]:
            chosen |= set(dominant_path(oplist, weights, preconditioner, product))
            chosen |= set(dominant_path(oplist, weights, product, preconditioner))
    return chosen


def split(oplist: OperationList, weights: Mapping[int, float]) -> dict[int, str]:
    """HOST or DPU for every statement. `weights`: seconds (or anything proportional) of each statement on the host."""
    on_host = dominant_cycle(oplist, weights)
    sides = {index: HOST if index in on_host else DPU for index in range(len(oplist.iteration))}
    _place_scalars(oplist, sides, on_host)
    return sides


def _place_scalars(oplist: OperationList, sides: dict[int, str], fixed: set[int]) -> None:
    """Scalar expressions cost nothing: on the host if all they read is there, so that none makes a round trip.

    The convergence test is the program's: on the host.
    """
    graph = flow_graph(oplist)
    free = [i for i, each in enumerate(oplist.iteration) if each.kind == Kind.SCALAR and i not in fixed]
    for index, each in enumerate(oplist.iteration):
        if each.kind == Kind.TEST or index in free:
            sides[index] = HOST
    moved = True
    while moved:
        away = [i for i in free if sides[i] == HOST and any(sides[j] == DPU for j in graph.predecessors(i))]
        sides.update(dict.fromkeys(away, DPU))
        moved = bool(away)
