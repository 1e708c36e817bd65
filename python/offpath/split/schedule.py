# SPDX-License-Identifier: BSD-3-Clause
"""A split program as what one process does in order: host steps, programs posted to the DPU, waits; as text.

PETSc's offpath_split solver reads it; docs/design/0058-solver-vectors-on-dpus.md has the words. There are two turns, as
copies take turns.
"""

from __future__ import annotations

from offpath.base.errors import UserError
from offpath.split.dominant import DPU, HOST
from offpath.split.flow import writers
from offpath.split.grammar import is_number
from offpath.split.oplist import OPERATORS, RESULT, Kind, Statement
from offpath.split.steps import SIDES, Receive, Reduce, SplitProgram
from offpath.split.turn import Program, Turn

_STEPS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_MOST_TERMS = 4
_TURNS = 2


def schedule(program: SplitProgram) -> str:
    """Raises UserError for what PETSc's solver cannot run."""
    return Scheduler(program).text()


class Scheduler:
    def __init__(self, program: SplitProgram):
        self.program, self.oplist = program, program.oplist
        self.writer = writers(self.oplist)
        self.exchanges = {each.name: each for each in program.exchanges}
        self.copies = {each.name: each.buffers for each in program.exchanges}
        self.sums = [step.names for side in SIDES for step in program.steps[side] if isinstance(step, Reduce)]
        for names in self.sums:  # one stretch of the scalars, whose turn it is
            most = max(self.copies.get(name, 1) for name in names)
            self.copies |= dict.fromkeys(names, most)
        sent = [each.name for each in program.exchanges if each.source == DPU]
        self.taken = [name for name in sent if not self.oplist.is_vector(name)]
        self.values: dict[str, str] = {}  # constants
        self.spare = 0  # the most of a program
        self.unsummed: set[str] = set()  # dot products of one rank so far
        self._check()

    def _check(self) -> None:
        kinds = [each.kind for each in self.oplist.operators.values()]
        if kinds.count(Kind.MATVEC) != 1 or kinds.count(Kind.PRECONDITION) != 1:
            raise UserError(
                f"{self.oplist.name} has {len(kinds)} operators (a solver of PETSc has one matrix and one "
                "preconditioner). Write it with these; -pc_type gamg is a V-cycle."
            )
        for index, statement in enumerate(self.oplist.iteration):
            if statement.kind in OPERATORS and self.program.sides[index] == DPU:
                raise UserError(f"line {statement.line}: {statement.text} is the DPU's (it runs vector work only).")
        for statement in (*self.oplist.setup, *self.oplist.iteration):
            if len(statement.terms) > _MOST_TERMS:
                raise UserError(f"line {statement.line} adds more than {_MOST_TERMS} vectors. Split it in two.")
        if RESULT in self.exchanges:
            raise UserError(f"{RESULT} is read by both sides (its copies take turns). Add a vector for one of them.")

    # ---- names ------------------------------------------------------------------------------------------------------

    def copy(self, name: str, iteration: int) -> str:
        return name + "'" * (iteration % self.copies.get(name, 1))

    def read(self, name: str, iteration: int, reader: int) -> str:
        """What the statement with that index reads; -1: one of setup."""
        if reader < 0 or name not in self.writer:
            return self.copy(name, -1)
        return self.copy(name, iteration - int(self.writer[name] >= reader))

    def constant(self, text: str) -> str:
        self.values[text] = text
        return text

    def temporary(self, program: Program) -> str:
        program.spare += 1
        self.spare = max(self.spare, program.spare)
        return f"#{program.spare}"

    # ---- statements -------------------------------------------------------------------------------------------------

    def expression(self, program: Program, statement: Statement, iteration: int, index: int) -> list[str]:
        lines, stack = [], []
        for word in statement.postfix:
            if word in _STEPS or word in ("sqrt", "neg"):
                right = stack.pop()
                result = self.temporary(program)
                if word == "neg":
                    lines.append(f"multiply {result} {self.constant('-1')} {right}")
                else:
                    left = right if word == "sqrt" else stack.pop()
                    lines.append(f"{_STEPS.get(word, word)} {result} {left} {right}")
                stack.append(result)
            else:
                stack.append(self.constant(word) if is_number(word) else self.read(word, iteration, index))
        (value,) = stack
        return [*lines, f"copy {self.copy(statement.target, iteration)} {value} {value}"]

    def add(self, program: Program, statement: Statement, iteration: int, index: int) -> None:
        """Precondition: fits()."""
        for name in self.unsummed & set(statement.reads):
            if self.writer[name] < index:
                raise UserError(
                    f"line {statement.line} needs {name} in the pass that makes it (a sum lies between). "
                    "Write that dot product further above."
                )
        if statement.kind == Kind.DOT and index >= 0:
            self.unsummed.add(statement.target)
        if statement.kind == Kind.SCALAR:
            late = program.statements or program.sums
            (program.after if late else program.before).extend(self.expression(program, statement, iteration, index))
            return
        target = self.copy(statement.target, iteration)
        if statement.kind == Kind.DOT:
            left, right = (self.read(name, iteration, index) for name in statement.factors)
            program.statements.append(f"dot {target} {left} {right}")
            return
        words = []
        for term in statement.terms:
            if is_number(term.coefficient):
                factor = self.constant(f"{term.sign * float(term.coefficient):.17g}")
            else:
                factor = self.read(term.coefficient, iteration, index)
                if term.sign < 0:
                    negative = self.temporary(program)
                    program.before.append(f"multiply {negative} {self.constant('-1')} {factor}")
                    factor = negative
            words.append(f"{factor} {self.read(term.vector, iteration, index)}")
        program.statements.append(" ".join(["update", target, *words]))

    @staticmethod
    def fits(program: Program, statement: Statement) -> bool:
        """Elementwise work comes before the sum; a scalar that it needs may not come of the same pass."""
        return statement.kind == Kind.SCALAR or not (program.sums or program.after)

    # ---- programs of the DPU ----------------------------------------------------------------------------------------

    def programs(self, iteration: int) -> list[Program]:
        out, current = [], Program()

        def close() -> None:
            nonlocal current
            if not current.empty():
                out.append(current)
                current = Program()

        for step in self.program.steps[DPU]:
            if isinstance(step, Receive):
                close()
                exchange = self.exchanges[step.name]
                vector = self.oplist.is_vector(step.name)
                (current.comes if vector else current.given).append(self.copy(step.name, iteration - exchange.carried))
                if not exchange.carried:
                    current.needs.add(step.name)
            elif isinstance(step, Reduce):
                if current.after or current.sums:
                    close()
                current.sums += [self.copy(name, iteration) for name in step.names]
                self.unsummed -= set(step.names)
                current.makes |= self.exchanges.keys() & set(step.names)
            else:
                for index in step.statements:
                    statement = self.oplist.iteration[index]
                    if not self.fits(current, statement):
                        close()
                    self.add(current, statement, iteration, index)
                    if statement.target in self.exchanges and statement.kind != Kind.DOT:
                        current.makes.add(statement.target)
                        if self.oplist.is_vector(statement.target):
                            current.back.append(self.copy(statement.target, iteration))
        close()
        return out

    # ---- the process ------------------------------------------------------------------------------------------------

    def setup(self) -> list[str]:
        out = []
        for statement in self.oplist.setup:
            if statement.kind in OPERATORS:
                out.append(f"{statement.kind} {self.copy(statement.target, -1)} {self.copy(statement.reads[0], -1)}")
                continue
            one = Program()
            self.add(one, statement, -1, -1)
            if statement.kind == Kind.DOT:
                one.sums.append(self.copy(statement.target, -1))
            out += one.lines("here")
        begin = Program()
        made = {each.target for each in self.oplist.setup}
        taken = [name for name in self.taken if name in made]  # by a wait that comes before the DPU has made any
        for name in dict.fromkeys([*self.program.begin[DPU], *taken]):
            (begin.comes if self.oplist.is_vector(name) else begin.given).append(self.copy(name, -1))
        tested = {self.oplist.iteration[i].reads[0] for i in self.tests() if self.is_of_the_next(i)}
        return [*out, *(f"test {self.copy(name, -1)}" for name in sorted(tested)), *begin.lines("there")]

    def tests(self) -> list[int]:
        return [i for i, each in enumerate(self.oplist.iteration) if each.kind == Kind.TEST]

    def is_of_the_next(self, test: int) -> bool:
        """It looks at a value that comes after the iterate has changed; setup has made that of the first guess."""
        (name,) = self.oplist.iteration[test].reads
        made_first = any(each.target == name for each in self.oplist.setup)
        return made_first and self.writer[RESULT] < self.writer.get(name, 0) < test

    def text(self) -> str:
        sections = [("setup", self.setup()), *((f"turn {n}", Turn(self, n).lines()) for n in range(_TURNS))]
        lines = ["offpath-schedule 1", f"name {self.oplist.name}"]
        vectors = sorted(self.oplist.vectors)
        lines += [f"vector {self.copy(name, n)}" for name in vectors for n in range(self.copies.get(name, 1))]
        lines += [f"scalar {name} 0" for name in self._scalars()]
        lines += [f"scalar {name} {value}" for name, value in self.values.items()]
        lines += [f"scalar #{number + 1} 0" for number in range(self.spare)]
        lines += [f"take {self.copy(name, n)}" for name in self.taken for n in range(self.copies[name])]
        lines.append(f"result {DPU if self.program.end else HOST}")
        for title, section in sections:
            lines += [title, *section]
        return "\n".join(lines) + "\n"

    def _scalars(self) -> list[str]:
        """Those that are summed together side by side."""
        out = [self.copy(name, n) for names in self.sums for n in range(self.copies[names[0]]) for name in names]
        others = {each.target for each in (*self.oplist.setup, *self.oplist.iteration) if each.target}
        for name in sorted(others - self.oplist.vectors - {name for names in self.sums for name in names}):
            out += [self.copy(name, n) for n in range(self.copies.get(name, 1))]
        return out
