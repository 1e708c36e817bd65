# SPDX-License-Identifier: BSD-3-Clause
"""Both sides' programs as rows of text, so that what one side waits for stands above or beside what waits."""

from offpath.split.costs import Costs
from offpath.split.oplist import Kind
from offpath.split.steps import SIDES, Pass, Receive, SplitProgram, Step


def rows(program: SplitProgram) -> list[tuple[str, str]]:
    """(host, DPU) in the order of an iteration; a receive stands below the row that sends."""
    todo = {side: list(program.steps[side]) for side in SIDES}
    carried = {each.name for each in program.exchanges if each.carried}
    sent: set[str] = set()
    result = []
    while any(todo.values()):
        row, sending = [], set()
        for side in SIDES:
            step = todo[side][0] if todo[side] else None
            if isinstance(step, Receive) and step.name not in sent | carried:
                step = None
            if step:
                todo[side].pop(0)
                sending |= _sends(program, step)
            row.append(text(program, step) if step else "")
        if not any(row):
            raise RuntimeError("both sides wait for each other")
        sent |= sending
        result.append(tuple(row))
    return result


def text(program: SplitProgram, step: Step) -> str:
    if isinstance(step, Receive):
        old = next(each.carried for each in program.exchanges if each.name == step.name)
        return f"<- {step.name}" + (" (of the last iteration)" if old else "")
    if isinstance(step, Pass):
        words = "; ".join(program.oplist.iteration[index].text for index in step.statements)
    else:
        words = f"sum {', '.join(step.names)} over all ranks"
    sends = _sends(program, step)
    return words + (f"  -> {', '.join(sorted(sends))}" if sends else "")


def _sends(program: SplitProgram, step: Step) -> set[str]:
    """What leaves for the other side after a step; dot products do so once they are summed."""
    if isinstance(step, Receive):
        return set()
    exchanged = {each.name for each in program.exchanges}
    if isinstance(step, Pass):
        statements = (program.oplist.iteration[index] for index in step.statements)
        return {each.target for each in statements if each.kind != Kind.DOT} & exchanged
    return set(step.names) & exchanged


def crossing_bytes(program: SplitProgram, rows: int) -> dict[str, int]:
    """By the side that sends, what a rank's iteration moves over the link of a DPU that is another machine."""
    sent = dict.fromkeys(SIDES, 0)
    for each in program.exchanges:
        sent[each.source] += (rows if program.oplist.is_vector(each.name) else 1) * 8
    return sent


def transfers(program: SplitProgram, costs: Costs) -> list[tuple[str, str, str, str, str]]:
    """Of every exchange: what, from where to where, bytes per rank, copies in shared memory, when it is received; and
    of all together what would cross a link."""
    found = []
    for each in program.exchanges:
        vector = program.oplist.is_vector(each.name)
        found.append(
            (
                f"{'vector' if vector else 'scalar'} {each.name}",
                f"{each.source} -> {each.destination}",
                f"{(costs.rows if vector else 1) * 8}",
                f"{each.buffers}, the writer waits" if each.waits else str(each.buffers),
                "next iteration" if each.carried else "same iteration",
            )
        )
    for side, sent in crossing_bytes(program, costs.rows).items():
        found.append(("all", f"from {side}", str(sent), "", "where the DPU is another machine"))
    return found
