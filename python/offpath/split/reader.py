# SPDX-License-Identifier: BSD-3-Clause
"""Operation lists from text: shipped variants and files of the user. The only part of the library that reads files."""

import math
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from offpath.base import files
from offpath.base.errors import UserError
from offpath.split import flow
from offpath.split.grammar import NAME, RESERVED, Malformed, statement
from offpath.split.oplist import INPUTS, RESULT, Kind, OperationList, Operator, Statement

MAX_BYTES = 1 << 16
MAX_STATEMENTS = 200
SECTIONS = ("setup", "iterate")


def variants() -> list[str]:
    """Names of the operation lists that come with Offpath."""
    return sorted(each.name.removesuffix(".txt") for each in _folder().iterdir() if each.name.endswith(".txt"))


def load(variant: str) -> OperationList:
    """A shipped variant by its name, or a file by its path. Raises UserError."""
    if variant in variants():
        return parse((_folder() / f"{variant}.txt").read_text(), f"{variant}.txt")
    path = Path(variant)
    if not path.exists():
        raise UserError(f"There is no variant or file '{variant}'. Give a file, or one of: {', '.join(variants())}.")
    if path.stat().st_size > MAX_BYTES:
        raise UserError(f"{path} is larger than 64 KiB (an operation list is a page of text). Give another file.")
    return parse(files.read_text(path, "operation list", "Give one."), str(path))


def parse(text: str, source: str = "operation list") -> OperationList:
    """The checked operation list of a text. Raises UserError that names `source` and the line."""
    return _Reader(source).read(text)


def _folder():
    return resources.files(__package__) / "variants"


class _Reader:
    def __init__(self, source: str):
        self.source = source
        self.title = ""
        self.operators: dict[str, Operator] = {}
        self.vectors = set(INPUTS)
        self.sections: dict[str, list[Statement]] = {}

    def read(self, text: str) -> OperationList:
        lines = text.splitlines()
        for number, raw in enumerate(lines, 1):
            line = raw.split("#")[0].strip()
            try:
                if line:
                    self._line(line, number)
            except Malformed as problem:
                raise self._error(number, str(problem)) from None
        for section in SECTIONS:
            if not self.sections.get(section):
                raise self._error(len(lines), f"there is no '{section}' with operations (a variant has both). Add it")
        setup, iteration = (tuple(self.sections[section]) for section in SECTIONS)
        result = OperationList(
            Path(self.source).stem, self.title, self.source, self.operators, frozenset(self.vectors), setup, iteration
        )
        self._check(result, lines)
        return result

    def _line(self, line: str, number: int) -> None:
        word, _, rest = line.partition(" ")
        if line in SECTIONS:
            if line in self.sections or (line == "iterate") != ("setup" in self.sections):
                raise Malformed(f"'{line}' is out of place (there is one setup, and iterate after it). Put it in order")
            self.sections[line] = []
        elif self.sections:
            statements = self.sections[list(self.sections)[-1]]
            if len(statements) == MAX_STATEMENTS:
                raise Malformed(f"more than {MAX_STATEMENTS} operations (no CG variant has so many). Shorten the list")
            statements.append(statement(line, number, self.operators, self.vectors))
        elif word == "title":
            self.title = rest.strip()
        elif word == "vectors":
            for name in rest.split():
                self._declare(name)
                self.vectors.add(name)
        elif word in ("matrix", "preconditioner"):
            self._operator(word, rest.split())
        else:
            raise Malformed(
                f"'{line}' stands before setup (only title, matrix, preconditioner and vectors do). Move it"
            )

    def _operator(self, word: str, words: Sequence[str]) -> None:
        if len(words) not in (1, 2):
            raise Malformed(
                f"'{word}' needs a name and maybe a cost in matrix-vector products (syntax). Write: {word} B 1.5"
            )
        self._declare(words[0])
        try:
            cost = float(words[1]) if len(words) == 2 else 1.0
        except ValueError:
            cost = math.nan
        if not 0 <= cost < math.inf:
            raise Malformed(f"cost '{words[1]}' is not a number from 0 up (weights follow from it). Give one like 1.5")
        self.operators[words[0]] = Operator(Kind.MATVEC if word == "matrix" else Kind.PRECONDITION, cost)

    def _declare(self, name: str) -> None:
        if not re.fullmatch(NAME, name) or name in RESERVED or name in INPUTS:
            raise Malformed(f"'{name}' cannot be declared (not a name, or a name with a meaning). Choose another")
        if name in self.vectors or name in self.operators:
            raise Malformed(f"{name} is declared twice (its meaning would be unclear). Remove one of them")

    def _check(self, oplist: OperationList, lines: Sequence[str]) -> None:
        for kind, what in ((Kind.PRECONDITION, "preconditioner"), (Kind.MATVEC, "matrix-vector product")):
            if not any(each.kind == kind for each in oplist.iteration):
                end = oplist.iteration[-1].line
                form = "m = B w" if kind == Kind.PRECONDITION else "n = A m"
                raise self._error(end, f"no {what} in the iteration (the split starts from it). Add one like {form}")
        problem = flow.first_problem(oplist)
        if problem:
            raise self._error(*problem)
        if RESULT not in {each.target for each in oplist.iteration}:
            raise self._error(
                oplist.iteration[-1].line, f"{RESULT} is never updated (it is the solution). Add: x = x + alpha * p"
            )

    def _error(self, line: int, problem: str) -> UserError:
        return UserError(f"{self.source}:{line}: {problem}.")
