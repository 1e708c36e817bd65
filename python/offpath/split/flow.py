# SPDX-License-Identifier: BSD-3-Clause
"""The data-flow graph of an iteration. Nodes are indices of statements; an edge has `name` and `distance`.

Distance 0: within one iteration. Distance 1: the value is carried into the next one, because it is read before it is
written. Edges of distance 0 always lead forward in the list, so they have no cycles.
"""

from __future__ import annotations

from offpath.split.graphs import networkx
from offpath.split.oplist import INPUTS, Kind, OperationList


def writers(oplist: OperationList) -> dict[str, int]:
    """Which statement of the iteration writes each name."""
    return {each.target: index for index, each in enumerate(oplist.iteration) if each.target}


def flow_graph(oplist: OperationList) -> networkx.MultiDiGraph:
    """Edges from the statement that writes a name to those that read it."""
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(len(oplist.iteration)))
    writer = writers(oplist)
    for reader, statement in enumerate(oplist.iteration):
        for name in statement.reads:
            if name in writer:
                graph.add_edge(writer[name], reader, name=name, distance=int(writer[name] >= reader))
    return graph


def within_iteration(oplist: OperationList) -> networkx.DiGraph:
    """The flow of distance 0 alone."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(oplist.iteration)))
    graph.add_edges_from((a, b) for a, b, distance in flow_graph(oplist).edges(data="distance") if distance == 0)
    return graph


def first_problem(oplist: OperationList) -> tuple[int, str] | None:
    """Line and text of the first thing that makes the list meaningless; None for a good one."""
    defined = set(INPUTS)
    for statement in oplist.setup:
        if statement.kind == Kind.TEST:
            return statement.line, "a test in setup (there is no loop to leave yet). Move it behind iterate"
        for name in statement.reads:
            if name not in defined:
                return statement.line, f"{name} is read before it has a value (its memory is undefined). Set it before"
        defined.add(statement.target)
    return _first_problem_of_iteration(oplist, defined)


def _first_problem_of_iteration(oplist: OperationList, defined: set[str]) -> tuple[int, str] | None:
    first: dict[str, int] = {}
    for index, statement in enumerate(oplist.iteration):
        if statement.target in first:
            earlier = oplist.iteration[first[statement.target]].line
            return statement.line, (
                f"{statement.target} is written twice, first in line {earlier} "
                "(a value of an iteration needs one name). Use a second name"
            )
        if statement.target:
            first[statement.target] = index
    for index, statement in enumerate(oplist.iteration):
        for name in statement.reads:
            if name in defined or first.get(name, index) < index:
                continue
            if name not in first:
                what = "vector" if oplist.is_vector(name) else "scalar"
                problem = f"{what} {name} is undefined (nothing writes it). Write it before, or correct the name"
                return statement.line, problem
            return statement.line, _too_early(oplist, name, index, first[name])
    return None


def _too_early(oplist: OperationList, name: str, reader: int, writer: int) -> str:
    """Read before it is written, and nothing in setup for the first iteration."""
    graph = within_iteration(oplist)
    if not networkx.has_path(graph, reader, writer):
        line = oplist.iteration[writer].line
        return (
            f"{name} is read before line {line} writes it (it has no value in the first iteration). "
            "Set it in setup, or move the line"
        )
    path = [name, *(oplist.iteration[each].target for each in networkx.shortest_path(graph, reader, writer))]
    return f"cycle {' -> '.join(path)} within an iteration (each needs the other first). Set {name} in setup"
