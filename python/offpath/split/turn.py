# SPDX-License-Identifier: BSD-3-Clause
"""One iteration of a process that runs both sides (schedule.py): a program of the DPU leaves as soon as it can."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from offpath.split.dominant import DPU, HOST
from offpath.split.oplist import OPERATORS, Kind
from offpath.split.steps import Receive, Reduce


@dataclass
class Program:
    """Scalar steps, one pass, one sum, scalar steps."""

    before: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    sums: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    comes: list[str] = field(default_factory=list)  # vectors, and ...
    given: list[str] = field(default_factory=list)  # ... scalars of the host
    back: list[str] = field(default_factory=list)  # vectors for the host
    needs: set[str] = field(default_factory=set)  # names that the host makes in this iteration
    makes: set[str] = field(default_factory=set)  # names that the host waits for
    spare: int = 0  # scalars for what lies between

    def empty(self) -> bool:
        return not (self.before or self.statements or self.sums or self.after)

    def lines(self, where: str) -> list[str]:
        words = [("in", self.comes), ("give", self.given), ("out", self.back), ("sum", self.sums)]
        lists = [f"{word} {' '.join(names)}" for word, names in words if names]
        return [where, *lists, *self.before, *self.statements, *(f"after {each}" for each in self.after), "end"]


class Turn:
    """One iteration of the process, in the host's order; what is the DPU's leaves as soon as it can."""

    def __init__(self, scheduler: Any, number: int):
        self.scheduler, self.number = scheduler, number
        self.oplist, self.exchanges = scheduler.oplist, scheduler.exchanges
        self.out: list[str] = []
        self.todo, self.posted = scheduler.programs(number), []
        self.sent: set[str] = set()  # to the DPU
        self.known: set[str] = set()  # values of this iteration that the host has
        self.waited = False
        self.host = Program()
        self.tests = {i: self.oplist.iteration[i] for i in scheduler.tests()}

    def lines(self) -> list[str]:
        self.test()
        self.post()
        for step in self.scheduler.program.steps[HOST]:
            if isinstance(step, Receive):
                if not self.waited if self.exchanges[step.name].carried else step.name not in self.known:
                    self.wait()
            elif isinstance(step, Reduce):
                self.host.sums += [self.scheduler.copy(name, self.number) for name in step.names]
                self.scheduler.unsummed -= set(step.names)
                self.flush(*step.names)
            else:
                for index in step.statements:
                    self.run(index)
                self.post()
        self.flush()
        assert not self.todo and not self.tests, "the orders of both sides are projections of one"
        return self.out

    def run(self, index: int) -> None:
        statement = self.oplist.iteration[index]
        if statement.kind == Kind.TEST:
            return
        if statement.target in self.exchanges and self.exchanges[statement.target].waits:
            self.wait()
        if statement.kind in OPERATORS:
            self.flush()
            source = self.scheduler.read(statement.reads[0], self.number, index)
            self.out.append(f"{statement.kind} {self.scheduler.copy(statement.target, self.number)} {source}")
        else:
            if not self.scheduler.fits(self.host, statement):
                self.flush()
            self.scheduler.add(self.host, statement, self.number, index)
            if statement.kind == Kind.SCALAR:
                self.known.add(statement.target)
        if statement.target in self.exchanges:
            self.sent.add(statement.target)

    def flush(self, *summed: str) -> None:
        if not self.host.empty():
            self.out += self.host.lines("here")
        self.host = Program()
        self.known.update(summed)
        self.test()

    def wait(self) -> None:
        self.flush()
        self.out.append("wait")
        self.waited = True
        self.known.update(*(each.makes for each in self.posted))
        self.test()

    def post(self) -> None:
        while self.todo and self.todo[0].needs <= self.sent:
            self.flush()
            if self.todo[0].given:
                self.wait()
            self.out += self.todo[0].lines("there")
            self.posted.append(self.todo.pop(0))

    def test(self) -> None:
        """As early as can be: nothing may come of a residual that is 0."""
        for index, statement in list(self.tests.items()):
            (name,) = statement.reads
            writer = self.scheduler.writer.get(name, len(self.oplist.iteration))
            is_old = writer >= index
            by_dpu = self.scheduler.program.sides.get(writer) == DPU
            if (self.waited or not by_dpu) if is_old else name in self.known:
                word = "test-next" if self.scheduler.is_of_the_next(index) else "test"
                self.out.append(f"{word} {self.scheduler.read(name, self.number, index)}")
                del self.tests[index]
