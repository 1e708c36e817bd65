# SPDX-License-Identifier: BSD-3-Clause
"""List scheduling by upward rank (as in HEFT) on two processors that are already chosen."""

from __future__ import annotations

from collections.abc import Mapping

from offpath.split.flow import flow_graph
from offpath.split.graphs import networkx
from offpath.split.oplist import OperationList


def statement_ranks(oplist: OperationList, weights: Mapping[int, float]) -> dict[int, float]:
    """The heaviest path from each statement to the end of the next iteration."""
    graph = flow_graph(oplist)
    next_ranks: dict[int, float] = {}
    for _ in range(2):
        ranks: dict[int, float] = {}
        for node in reversed(range(len(oplist.iteration))):
            after = [
                ranks[reader] if distance == 0 else next_ranks.get(reader, 0.0)
                for _, reader, distance in graph.out_edges(node, data="distance")
            ]
            ranks[node] = weights[node] + max(after, default=0.0)
        next_ranks = ranks
    return ranks


def list_schedule(graph: networkx.DiGraph, sides: Mapping, seconds: Mapping, ranks: Mapping) -> list:
    """A topological order of `graph`: the node that can start first, of several the one of the highest rank.

    Nodes whose side is None take no processor.
    """
    missing = dict(graph.in_degree())
    position = {node: number for number, node in enumerate(graph)}
    arrival = dict.fromkeys(graph, 0.0)
    free: dict = {}
    ready, order = [node for node in graph if not missing[node]], []
    while ready:
        start, _, _, node = min(
            ((max(arrival[each], free.get(sides[each], 0.0)), -ranks[each], position[each], each) for each in ready),
            key=lambda choice: choice[:3],
        )
        end = start + seconds[node]
        if sides[node] is not None:
            free[sides[node]] = end
        ready.remove(node)
        order.append(node)
        for after in graph.successors(node):
            arrival[after] = max(arrival[after], end)
            missing[after] -= 1
            if not missing[after]:
                ready.append(after)
    return order
