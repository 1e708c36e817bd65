# SPDX-License-Identifier: BSD-3-Clause
"""A split iteration: what each side runs, in order, and what is exchanged. `program` makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Union

from offpath.split.dominant import DPU, HOST
from offpath.split.oplist import OperationList

SIDES = (HOST, DPU)


@dataclass(frozen=True)
class Exchange:
    """One name sent in every iteration.

    carried: nobody reads it in the iteration that made it, so it is received in the next one; the first iteration
    receives the value of setup. buffers: copies in shared memory, value i in copy i modulo that, with which the writer
    never overwrites what is still read; `waits`: only if it waits for the reads of the value before last.
    """

    name: str
    source: str
    carried: bool
    buffers: int = 2
    waits: bool = False

    @property
    def destination(self) -> str:
        return DPU if self.source == HOST else HOST


@dataclass(frozen=True)
class Pass:
    """One operator, scalar expression or test; or elementwise statements that share one pass over memory."""

    statements: tuple[int, ...]


@dataclass(frozen=True)
class Receive:
    name: str


@dataclass(frozen=True)
class Reduce:
    """Starts one global sum of these dot products; who reads one of them waits for it."""

    names: tuple[str, ...]


Step = Union[Pass, Receive, Reduce]


@dataclass(frozen=True)
class SplitProgram:
    oplist: OperationList
    sides: Mapping[int, str]  # of statements
    steps: Mapping[str, tuple[Step, ...]]  # of each side, in order
    exchanges: tuple[Exchange, ...]
    begin: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # values of setup that a side needs to start
    end: tuple[str, ...] = ()  # names that the host needs of the DPU when the loop has ended
