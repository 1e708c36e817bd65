# SPDX-License-Identifier: BSD-3-Clause
"""Runs an operation list, or its split program, on real numbers: what shows that a list converges and a split is right.

Operators are functions of a vector. Two sides have two name spaces, and nothing passes between them but exchanges.
"""

import operator
from collections import deque
from collections.abc import Callable, Iterator, Mapping

import numpy
from offpath.split.oplist import Kind, OperationList, Statement
from offpath.split.steps import SIDES, Receive, Reduce, SplitProgram
from split_support import ROWS

BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
UNARY = {"neg": operator.neg, "sqrt": numpy.sqrt}

Values = dict[str, object]
Operators = Mapping[str, Callable]


class Unsound(Exception):
    """A split program that reads what is not there, or waits for what never comes."""


def run_list(oplist: OperationList, operators: Operators, b, x) -> Iterator[Values]:
    """Setup, then one iteration per value taken: everything the iteration wrote, and each test's value by its label."""
    names = _setup(oplist, operators, b, x)
    while True:
        written: Values = {}
        for statement in oplist.iteration:
            _execute(statement, names, operators, written)
        yield written


def run_split(program: SplitProgram, operators: Operators, b, x) -> Iterator[Values]:
    """The same from the two sides' programs. Raises Unsound."""
    initial = _setup(program.oplist, operators, b, x)
    sides = {side: _Side(program, side, initial, operators) for side in SIDES}
    channels = {each.name: deque([initial[each.name]] if each.carried else []) for each in program.exchanges}
    while True:
        written: Values = {}
        waiting = {side: sides[side].iteration(channels, written) for side in SIDES}
        while waiting:
            moved = False
            for side, running in list(waiting.items()):
                state = next(running, None)
                if state is None:
                    del waiting[side]
                moved = moved or state is not False
            if not moved:
                raise Unsound("both sides wait for each other")
        yield written


class _Side:
    """One processor with its own names; `iteration` yields True after a step and False while it waits."""

    def __init__(self, program: SplitProgram, side: str, initial: Values, operators: Operators):
        self.program, self.operators = program, operators
        self.steps = program.steps[side]
        carried = {each.name for each in program.exchanges if each.carried and each.destination == side}
        self.names = {name: initial[name] for name in program.begin[side] if name not in carried}
        self.sends = {each.name for each in program.exchanges if each.source == side}

    def iteration(self, channels: Mapping[str, deque], written: Values) -> Iterator[bool]:
        for step in self.steps:
            if isinstance(step, Receive):
                while not channels[step.name]:
                    yield False
                self.names[step.name] = channels[step.name].popleft()
            elif not isinstance(step, Reduce):
                for index in step.statements:
                    statement = self.program.oplist.iteration[index]
                    _execute(statement, self.names, self.operators, written)
                    if statement.target in self.sends:
                        channels[statement.target].append(self.names[statement.target])
            yield True


def _setup(oplist: OperationList, operators: Operators, b, x) -> Values:
    names: Values = {"b": b, "x": x}
    for statement in oplist.setup:
        _execute(statement, names, operators, {})
    return names


def _execute(statement: Statement, names: Values, operators: Operators, written: Values) -> None:
    if missing := [name for name in statement.reads if name not in names]:
        raise Unsound(f"line {statement.line} reads {missing[0]}, which is not there")
    if statement.kind == Kind.TEST:
        written[statement.target or statement.text] = names[statement.reads[0]]
        return
    with numpy.errstate(all="ignore"):  # a breakdown of the method gives inf or nan, as on the machine
        names[statement.target] = written[statement.target] = _value(statement, names, operators)


def _value(statement: Statement, names: Values, operators: Operators):
    if statement.kind == Kind.DOT:
        return names[statement.factors[0]] @ names[statement.factors[1]]
    if statement.kind == Kind.SCALAR:
        return _expression(statement.postfix, names)
    if statement.kind == Kind.UPDATE:
        terms = (each.sign * _number(each.coefficient, names) * names[each.vector] for each in statement.terms)
        return sum(terms, start=numpy.zeros(ROWS))
    return operators[statement.operator](names[statement.reads[0]])


def _number(word: str, names: Values) -> numpy.float64:
    return numpy.float64(names.get(word, word))


def _expression(postfix: tuple[str, ...], names: Values) -> numpy.float64:
    stack: list[numpy.float64] = []
    for word in postfix:
        if word in BINARY:
            right = stack.pop()
            stack.append(BINARY[word](stack.pop(), right))
        else:
            stack.append(UNARY[word](stack.pop()) if word in UNARY else _number(word, names))
    return stack.pop()
