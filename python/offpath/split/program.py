# SPDX-License-Identifier: BSD-3-Clause
"""From a partition to programs: one global order, projected on both sides, with the exchanges between them.

Each side has a name space of its own. A name that one side writes and the other reads is *exchanged*: sent as soon as
it is there, received into the other's name space. Because both orders are projections of one, no two receives can wait
for each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from offpath.split.buffers import with_buffers
from offpath.split.costs import Costs
from offpath.split.dominant import DPU, HOST
from offpath.split.flow import flow_graph, writers
from offpath.split.graphs import networkx
from offpath.split.oplist import RESULT, Kind, OperationList
from offpath.split.ordering import list_schedule, statement_ranks
from offpath.split.steps import SIDES, Exchange, Pass, Receive, Reduce, SplitProgram, Step


def exchanges_of(oplist: OperationList, sides: Mapping[int, str]) -> list[Exchange]:
    """In the order in which the names are written."""
    graph, found = flow_graph(oplist), []
    for name, writer in writers(oplist).items():
        distances = [
            edge["distance"] for _, reader, edge in graph.out_edges(writer, data=True) if sides[reader] != sides[writer]
        ]
        if distances:
            found.append(Exchange(name, sides[writer], carried=min(distances) == 1))
    return found


def order_graph(
    oplist: OperationList, sides: Mapping[int, str], passes: Sequence[Pass], exchanges: Sequence[Exchange]
) -> networkx.DiGraph:
    """What must come before what within an iteration: flow, and old values read before they are overwritten.

    Nodes are passes and receives.
    """
    graph = networkx.DiGraph()
    graph.add_nodes_from(passes)
    home = {index: each for each in passes for index in each.statements}
    writer = writers(oplist)
    exchanged = {each.name: each for each in exchanges}
    for index, statement in enumerate(oplist.iteration):
        for name in statement.reads:
            if name not in writer:
                continue
            made = home[writer[name]]
            if sides[writer[name]] == sides[index]:
                _edge(graph, *((made, home[index]) if writer[name] < index else (home[index], made)))
                continue
            receive = Receive(name)
            if exchanged[name].carried or writer[name] < index:
                _edge(graph, receive, home[index])
            else:
                _edge(graph, home[index], receive)  # reads the value of the iteration before
            if not exchanged[name].carried:
                _edge(graph, made, receive)
    return graph


def _edge(graph: networkx.DiGraph, before, after) -> None:
    if before != after:
        graph.add_edge(before, after)


def assemble(
    oplist: OperationList, sides: Mapping[int, str], passes: Sequence[Pass], costs: Costs
) -> SplitProgram | None:
    """Both sides in topological order; None if a pass would need its own result. `finish` adds the rest."""
    exchanges = exchanges_of(oplist, sides)
    graph = order_graph(oplist, sides, passes, exchanges)
    if not networkx.is_directed_acyclic_graph(graph):
        return None
    exchanged = {each.name: each for each in exchanges}
    ranks = statement_ranks(oplist, costs.weights())
    side_of = {node: sides[node.statements[0]] for node in passes}
    order = list_schedule(
        graph,
        {node: side_of.get(node) for node in graph},
        {node: costs.seconds(node.statements, side_of[node]) if node in side_of else 0.0 for node in graph},
        {node: max(map(ranks.get, node.statements)) if node in side_of else math.inf for node in graph},
    )
    steps: dict[str, list[Step]] = {side: [] for side in SIDES}
    for node in order:
        steps[side_of[node] if node in side_of else exchanged[node.name].destination].append(node)
    soon = {each.name for each in exchanges if not each.carried}
    finished = {side: _with_reductions(oplist, _receives_late(oplist, each), soon) for side, each in steps.items()}
    return SplitProgram(oplist, dict(sides), finished, tuple(exchanges))


def as_written(oplist: OperationList) -> SplitProgram:
    """Everything on the host in the order of the list, one operation at a time."""
    steps = _with_reductions(oplist, [Pass((index,)) for index in range(len(oplist.iteration))])
    return SplitProgram(oplist, dict.fromkeys(range(len(oplist.iteration)), HOST), {HOST: steps, DPU: ()}, ())


def finish(program: SplitProgram) -> SplitProgram:
    """Adds what is exchanged before and after the loop, and the buffers of each exchange."""
    exchanges = tuple(with_buffers(program, each) for each in program.exchanges)
    last = (RESULT,) if program.sides[writers(program.oplist)[RESULT]] == DPU else ()
    return replace(program, exchanges=exchanges, begin={side: _begin(program, side) for side in SIDES}, end=last)


def _receives_late(oplist: OperationList, steps: Sequence[Step]) -> list[Step]:
    """Each receive directly before the first pass that reads it; those of the next iteration's values at the end."""
    result, waiting = [], []
    for step in steps:
        if isinstance(step, Receive):
            waiting.append(step)
            continue
        reads = {name for index in step.statements for name in oplist.iteration[index].reads}
        result += [each for each in waiting if each.name in reads]
        waiting = [each for each in waiting if each.name not in reads]
        result.append(step)
    return result + waiting


def _with_reductions(oplist: OperationList, steps: Sequence[Step], soon: Set[str] = frozenset()) -> tuple[Step, ...]:
    """Dot products that nothing comes between are summed together, behind the last of them. `soon`: what is exchanged
    within an iteration. No such sum waits for such a value: the other side may want the sum before it sends that."""
    result: list[Step] = []
    pending: list[str] = []
    place = 0

    def close() -> None:
        if pending:
            result.insert(place, Reduce(tuple(pending)))
            pending.clear()

    for step in steps:
        dots = [] if isinstance(step, Receive) else _dots(oplist, step)
        may_wait = isinstance(step, Receive) and not (step.name in soon and soon.intersection(pending))
        if not dots and not may_wait:
            close()
        result.append(step)
        if dots:
            pending += dots
            place = len(result)
    close()
    return tuple(result)


def _dots(oplist: OperationList, step: Pass) -> list[str]:
    return [oplist.iteration[i].target for i in step.statements if oplist.iteration[i].kind == Kind.DOT]


def _begin(program: SplitProgram, side: str) -> tuple[str, ...]:
    """Read by this side before it writes or receives them: values of setup."""
    present, needed = set(), []
    first_by_message = {each.name for each in program.exchanges if each.carried}
    for step in program.steps[side]:
        if isinstance(step, Receive):
            present.add(step.name)
            if step.name in first_by_message and step.name not in needed:
                needed.append(step.name)
        elif isinstance(step, Pass):
            for index in step.statements:
                statement = program.oplist.iteration[index]
                needed += [name for name in statement.reads if name not in present and name not in needed]
                present |= {statement.target} - {None}
    return tuple(needed)
