# SPDX-License-Identifier: BSD-3-Clause
"""A preconditioned CG variant as a list of operations: what the text format says, without its layout."""

from __future__ import annotations

from dataclasses import dataclass

from offpath.base.oldest import StrEnum

RIGHT_HAND_SIDE, RESULT = "b", "x"
INPUTS = (RIGHT_HAND_SIDE, RESULT)  # the latter as the first guess


class Kind(StrEnum):
    MATVEC = "matvec"
    PRECONDITION = "precondition"
    UPDATE = "update"
    DOT = "dot"
    SCALAR = "scalar"
    TEST = "test"


OPERATORS = (Kind.MATVEC, Kind.PRECONDITION)
ELEMENTWISE = (Kind.UPDATE, Kind.DOT)  # work on each row by itself, so several can share one pass over memory


@dataclass(frozen=True)
class Term:
    """sign * coefficient * vector; the coefficient is a scalar's name, a number as text, or "1"."""

    sign: int
    coefficient: str
    vector: str


@dataclass(frozen=True)
class Statement:
    """One operation. `reads` holds every name once, in order of appearance; `target` is None for a test."""

    line: int
    kind: Kind
    target: str | None
    reads: tuple[str, ...]
    text: str
    operator: str | None = None  # matvec, precondition: whose product with reads[0]
    terms: tuple[Term, ...] = ()  # update: their sum; none: the zero vector
    factors: tuple[str, str] | None = None  # dot
    postfix: tuple[str, ...] = ()  # scalar: names, numbers and + - * / sqrt neg in postfix order


@dataclass(frozen=True)
class Operator:
    kind: Kind
    cost: float  # in matrix-vector products


@dataclass(frozen=True)
class OperationList:
    """A variant that was checked: every name is defined where it is read and written once in an iteration."""

    name: str
    title: str
    source: str  # file the text came from, for messages
    operators: dict[str, Operator]
    vectors: frozenset[str]
    setup: tuple[Statement, ...]
    iteration: tuple[Statement, ...]

    def is_vector(self, name: str) -> bool:
        return name in self.vectors
