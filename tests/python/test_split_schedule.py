# SPDX-License-Identifier: BSD-3-Clause
"""Any operation list: its split program runs every statement once, in a legal order, and reads only what was sent."""

import itertools
import random

import numpy
from hypothesis import given, settings, strategies
from offpath.split import columns
from offpath.split.dominant import HOST
from offpath.split.oplist import ELEMENTWISE, OPERATORS, Kind
from offpath.split.steps import SIDES, Pass, Receive, Reduce
from split_interpreter import run_list, run_split
from split_support import ROWS, machines, operators, oplists, program_of, same

APPLIED, _ = operators(7)
RIGHT, GUESS = numpy.linspace(-1, 1, ROWS), numpy.full(ROWS, 0.5)
some = settings(max_examples=120, deadline=None, database=None, print_blob=True)


@some
@given(oplists(), machines())
def test_the_split_gives_the_same_bits(oplist, machine):
    program, _ = program_of(oplist, machine)
    whole, split = run_list(oplist, APPLIED, RIGHT, GUESS), run_split(program, APPLIED, RIGHT, GUESS)
    for one, other in itertools.islice(zip(whole, split, strict=True), 4):
        assert same(one, other)


@some
@given(oplists(), machines())
def test_every_statement_runs_once_on_its_side(oplist, machine):
    program, _ = program_of(oplist, machine)
    for side in SIDES:
        ran = [i for step in program.steps[side] if isinstance(step, Pass) for i in step.statements]
        assert sorted(ran) == [i for i in range(len(oplist.iteration)) if program.sides[i] == side]
        reduced = [name for step in program.steps[side] if isinstance(step, Reduce) for name in step.names]
        assert reduced == [oplist.iteration[i].target for i in ran if oplist.iteration[i].kind == Kind.DOT]
        received = [step.name for step in program.steps[side] if isinstance(step, Receive)]
        assert sorted(received) == sorted(each.name for each in program.exchanges if each.destination == side)
    assert all(program.sides[i] == HOST for i, each in enumerate(oplist.iteration) if each.kind in OPERATORS)
    for step in (step for steps in program.steps.values() for step in steps if isinstance(step, Pass)):
        assert len(step.statements) == 1 or all(oplist.iteration[i].kind in ELEMENTWISE for i in step.statements)
        sums = {oplist.iteration[i].target for i in step.statements if oplist.iteration[i].kind == Kind.DOT}
        for i in step.statements:  # a pass never uses its own sum: those that read one come first, for the old value
            earlier = {oplist.iteration[j].target for j in step.statements if j < i}
            assert not sums & earlier & set(oplist.iteration[i].reads)


@some
@given(oplists(), machines())
def test_neither_side_waits_for_what_the_other_makes_of_its_sum(oplist, machine):
    program, _ = program_of(oplist, machine)
    for side, column in zip(SIDES, zip(*columns.rows(program), strict=True), strict=True):
        assert len([cell for cell in column if cell]) == len(program.steps[side])


@some
@given(oplists(), machines(), strategies.integers(0, 2**32))
def test_the_copies_in_shared_memory_suffice(oplist, machine, seed):
    """Both sides run ahead of each other as far as they can, in a random order; values are their own numbers."""
    program, _ = program_of(oplist, machine)
    memory = _SharedMemory(program)
    chance = random.Random(seed)
    running = {side: memory.run(side, 6) for side in SIDES}
    idle = 0
    while running:
        side = chance.choice(list(running))
        for _ in range(chance.choice((1, 3, 50))):
            moved = next(running[side], None)
            if moved is None:
                del running[side]
            idle = 0 if moved or moved is None else idle + 1
            if not moved:
                break
        assert idle < 1000, "both sides wait for each other"


class _SharedMemory:
    """Copies of exchanged names; asserts that a read finds the value that the list means."""

    def __init__(self, program):
        self.program = program
        self.exchanges = {each.name: each for each in program.exchanges}
        self.copies = {each.name: [-1] * each.buffers for each in program.exchanges}
        self.written = dict.fromkeys(self.exchanges, -1)
        self.reads = {name: {} for name in self.exchanges}
        self.writer = {each.target: i for i, each in enumerate(program.oplist.iteration) if each.target}

    def _readers(self, name: str) -> tuple[int, int]:
        """How many statements of the other side read a value in its own iteration, and in the next."""
        other = [i for i in self.program.sides if self.program.sides[i] == self.exchanges[name].destination]
        mine = [i for i in other if name in self.program.oplist.iteration[i].reads]
        late = sum(i <= self.writer[name] for i in mine)
        return len(mine) - late, late

    def _may_write(self, name: str, version: int) -> bool:
        exchange = self.exchanges[name]
        if not exchange.waits or version - exchange.buffers < -1:
            return True
        soon, late = self._readers(name)
        expected = late if version - exchange.buffers == -1 else soon + late
        return self.reads[name].get(version - exchange.buffers, 0) >= expected

    def run(self, side: str, iterations: int):
        for iteration in range(iterations):
            for step in self.program.steps[side]:
                if isinstance(step, Receive):
                    while self.written[step.name] < iteration - self.exchanges[step.name].carried:
                        yield False
                elif isinstance(step, Pass):
                    targets = [self.program.oplist.iteration[i].target for i in step.statements]
                    for name in targets:
                        while name in self.exchanges and not self._may_write(name, iteration):
                            yield False
                    for i in step.statements:
                        self._execute(side, i, iteration)
                yield True

    def _execute(self, side: str, index: int, iteration: int) -> None:
        statement = self.program.oplist.iteration[index]
        for name in statement.reads:
            if name in self.exchanges and self.exchanges[name].destination == side:
                version = iteration - (index <= self.writer[name])
                assert self.copies[name][version % len(self.copies[name])] == version, (statement.text, name)
                self.reads[name][version] = self.reads[name].get(version, 0) + 1
        if statement.target in self.exchanges:
            copies = self.copies[statement.target]
            copies[iteration % len(copies)] = iteration
            self.written[statement.target] = iteration
