# SPDX-License-Identifier: BSD-3-Clause
"""How many copies of an exchanged name shared memory holds, so that nobody overwrites what is still read."""

from __future__ import annotations

from dataclasses import replace

from offpath.split.flow import writers
from offpath.split.graphs import networkx
from offpath.split.steps import SIDES, Exchange, Pass, Receive, SplitProgram, Step

MOST = 2  # more would only let one side run further ahead
_UNROLLED = 6


def with_buffers(program: SplitProgram, exchange: Exchange) -> Exchange:
    """The exchange with its number of copies.

    A write always comes after a read if the orders of the two sides and the exchanges between them leave no other way.
    Waiting for the reads of the value before last never locks up: they belong to earlier iterations of the other side.
    """
    graph = _unrolled(program)
    made = _home(program)[writers(program.oplist)[exchange.name]]
    reads = _reads(program, exchange)
    age = max(each for each, _ in reads)
    last_read = [step for each, step in reads if each == age][-1]
    iteration = 2
    for copies in range(1, MOST + 1):
        overwritten = (exchange.source, iteration - age + copies, made)
        if networkx.has_path(graph, (exchange.destination, iteration, last_read), overwritten):
            return replace(exchange, buffers=copies, waits=False)
    return replace(exchange, buffers=MOST, waits=True)


def _unrolled(program: SplitProgram) -> networkx.DiGraph:
    graph, home, writer = networkx.DiGraph(), _home(program), writers(program.oplist)
    for side in SIDES:
        line = [(side, iteration, step) for iteration in range(_UNROLLED) for step in program.steps[side]]
        graph.add_nodes_from(line)
        networkx.add_path(graph, line)
    for each in program.exchanges:
        for iteration in range(_UNROLLED - each.carried):
            sent = (each.source, iteration, home[writer[each.name]])
            graph.add_edge(sent, (each.destination, iteration + each.carried, Receive(each.name)))
    return graph


def _home(program: SplitProgram) -> dict[int, Pass]:
    passes = (step for steps in program.steps.values() for step in steps if isinstance(step, Pass))
    return {index: each for each in passes for index in each.statements}


def _reads(program: SplitProgram, exchange: Exchange) -> list[tuple[int, Step]]:
    """Passes of the other side, in order, each with the age in iterations of the value it reads."""
    found, received = [], False
    for step in program.steps[exchange.destination]:
        received = received or step == Receive(exchange.name)
        if isinstance(step, Pass) and any(exchange.name in program.oplist.iteration[i].reads for i in step.statements):
            found.append((int(exchange.carried or not received), step))
    return found
