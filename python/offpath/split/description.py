# SPDX-License-Identifier: BSD-3-Clause
"""A split program as plain data for an executor; the fields are described in docs/design/0008-krylov-split.md."""

from offpath.split.columns import crossing_bytes
from offpath.split.comparing import compare
from offpath.split.costs import Costs
from offpath.split.grammar import is_number
from offpath.split.oplist import INPUTS, OPERATORS, Kind, OperationList, Statement
from offpath.split.steps import SIDES, Pass, Receive, SplitProgram, Step

FORMAT, VERSION = "offpath-split", 1


def describe(program: SplitProgram, costs: Costs) -> dict:
    oplist = program.oplist
    return {
        "format": FORMAT,
        "version": VERSION,
        "variant": oplist.name,
        "title": oplist.title,
        "operators": {name: str(each.kind) for name, each in oplist.operators.items()},
        "vectors": sorted(oplist.vectors),
        "scalars": scalars(oplist),
        "setup": [operation(each) for each in oplist.setup],
        "sides": {side: [_step(program, step, costs) for step in program.steps[side]] for side in SIDES},
        "exchanges": [
            {
                "name": each.name,
                "kind": "vector" if oplist.is_vector(each.name) else "scalar",
                "from": each.source,
                "to": each.destination,
                "carried": each.carried,
                "buffers": each.buffers,
                "waits": each.waits,
            }
            for each in program.exchanges
        ],
        "begin": {side: list(program.begin[side]) for side in SIDES},
        "end": list(program.end),
        "prediction": _prediction(program, costs),
    }


def scalars(oplist: OperationList) -> list[str]:
    written = {each.target for each in (*oplist.setup, *oplist.iteration) if each.target}
    return sorted(written - oplist.vectors - set(INPUTS))


def operation(statement: Statement) -> dict:
    if statement.kind == Kind.TEST:
        return {"op": "test", "x": statement.reads[0]}
    result: dict = {"op": str(statement.kind), "target": statement.target}
    if statement.kind in OPERATORS:
        result |= {"operator": statement.operator, "x": statement.reads[0]}
    elif statement.kind == Kind.DOT:
        result |= {"x": statement.factors[0], "y": statement.factors[1]}
    elif statement.kind == Kind.UPDATE:
        result["terms"] = [
            {
                "number": term.sign * (float(term.coefficient) if is_number(term.coefficient) else 1.0),
                "scalar": None if is_number(term.coefficient) else term.coefficient,
                "vector": term.vector,
            }
            for term in statement.terms
        ]
    else:
        result |= {"postfix": list(statement.postfix), "expression": statement.text.partition("=")[2].strip()}
    return result


def _step(program: SplitProgram, step: Step, costs: Costs) -> dict:
    sent = {each.name for each in program.exchanges}
    if isinstance(step, Receive):
        return {"step": "receive", "name": step.name}
    if not isinstance(step, Pass):
        return {"step": "reduce", "names": list(step.names), "sends": [name for name in step.names if name in sent]}
    statements = [program.oplist.iteration[index] for index in step.statements]
    ready = [each.target for each in statements if each.target in sent and each.kind != Kind.DOT]
    return {
        "step": "run",
        "operations": [operation(each) for each in statements],
        "sends": ready,
        "bytes_per_row": costs.bytes_per_row(step.statements),
    }


def _prediction(program: SplitProgram, costs: Costs) -> dict:
    found = compare(program, costs)
    return {
        "rows": costs.rows,
        "nonzeros_per_row": costs.nonzeros_per_row,
        "seconds_per_iteration": {name: each.total_s for name, each in vars(found).items()},
        "busy_s": found.split.busy_s,
        "bytes_per_row": found.split.bytes_per_row,
        "crossing_bytes": crossing_bytes(program, costs.rows),
        "memory_bound": found.split.roof_s >= found.split.schedule_s,
    }
