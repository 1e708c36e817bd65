# SPDX-License-Identifier: BSD-3-Clause
"""Fusion: vector updates and dot products of one side share passes over memory where that is legal and not slower."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from offpath.split.costs import Costs
from offpath.split.flow import flow_graph
from offpath.split.oplist import ELEMENTWISE, OperationList
from offpath.split.prediction import predict
from offpath.split.program import assemble
from offpath.split.steps import Pass, SplitProgram


def unfused(oplist: OperationList) -> list[Pass]:
    return [Pass((index,)) for index in range(len(oplist.iteration))]


def fuse(oplist: OperationList, sides: Mapping[int, str], costs: Costs) -> SplitProgram:
    """Joins two passes at a time, those first that save most memory traffic, until none is left that may be joined.

    A pass may not need what comes of it by another way than row by row (a sum, an operator, the other side); then no
    order of the passes exists. And a pass starts when all that it reads is there, so joining can make an iteration
    longer: then the two stay apart.
    """
    passes = unfused(oplist)
    program = assemble(oplist, sides, passes, costs)
    best = predict(program, costs).total_s
    refused: set[frozenset[Pass]] = set()
    joining = True
    while joining:
        joining = False
        for one, other, joined in _candidates(oplist, sides, passes, costs):
            if frozenset((one, other)) in refused:
                continue
            wanted = [joined if each == one else each for each in passes if each != other]
            attempt = assemble(oplist, sides, wanted, costs)
            seconds = predict(attempt, costs).total_s if attempt else None
            if seconds is not None and seconds <= best * (1 + 1e-9):
                best, passes, program, joining = min(best, seconds), wanted, attempt, True
                break
            refused.add(frozenset((one, other)))
    return program


def _candidates(
    oplist: OperationList, sides: Mapping[int, str], passes: Sequence[Pass], costs: Costs
) -> Iterator[tuple[Pass, Pass, Pass]]:
    """Pairs of passes of one side that no sum connects directly, and what they become; largest saving first."""
    elementwise = [each for each in passes if oplist.iteration[each.statements[0]].kind in ELEMENTWISE]
    sums = [
        {writer, reader}
        for writer, reader, edge in flow_graph(oplist).edges(data=True)
        if edge["distance"] == 0 and not oplist.is_vector(edge["name"])
    ]
    found = []
    for one, other in combinations(elementwise, 2):
        joined = Pass(tuple(sorted((*one.statements, *other.statements))))
        if sides[one.statements[0]] == sides[other.statements[0]] and not any(
            s <= set(joined.statements) for s in sums
        ):
            traffic = [costs.bytes_per_row(each.statements) for each in (joined, one, other)]
            found.append((traffic[0] - traffic[1] - traffic[2], joined.statements, (one, other, joined)))
    yield from (each for _, _, each in sorted(found, key=lambda candidate: candidate[:2]))
