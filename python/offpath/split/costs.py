# SPDX-License-Identifier: BSD-3-Clause
"""What statements cost: bytes per row by the roofline model, or measured seconds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from offpath.base.errors import UserError
from offpath.base.oldest import tomllib
from offpath.split.dominant import DPU, HOST
from offpath.split.oplist import ELEMENTWISE, OPERATORS, Kind, OperationList, Statement

VALUE_BYTES, INDEX_BYTES = 8, 4


@dataclass(frozen=True)
class Side:
    """One processor. Measured seconds per row win over bytes; names of results win over kinds of operations."""

    bytes_per_s: float
    seconds_per_row: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """All times in seconds; defaults are of no machine in particular (two cores of one memory)."""

    host: Side = Side(12e9)
    dpu: Side = Side(12e9)
    shared_bytes_per_s: float = math.inf  # what both together can draw from one memory
    exchange_latency_s: float = 1e-6
    exchange_bytes_per_s: float = math.inf  # inf: both sides see the same memory, vectors are not moved
    reduction_s: float = 0.0  # one global sum of a few numbers

    def side(self, name: str) -> Side:
        return {HOST: self.host, DPU: self.dpu}[name]


@dataclass(frozen=True)
class Costs:
    """Seconds of statements for `rows` rows per rank and `nonzeros_per_row`."""

    oplist: OperationList
    machine: Machine
    rows: int
    nonzeros_per_row: float

    def bytes_per_row(self, statements: Sequence[int]) -> float:
        """Memory traffic of one pass: a vector is read once if it comes from memory, written once if it changes."""
        total, read, written = 0.0, set(), set()
        for statement in (self.oplist.iteration[index] for index in statements):
            if statement.kind in OPERATORS:
                product = self.nonzeros_per_row * (VALUE_BYTES + INDEX_BYTES) + INDEX_BYTES + 2 * VALUE_BYTES
                total += self.oplist.operators[statement.operator].cost * product
            elif statement.kind in ELEMENTWISE:
                read |= {name for name in statement.reads if self.oplist.is_vector(name)} - written
                written |= {statement.target} & self.oplist.vectors
        return total + VALUE_BYTES * (len(read) + len(written))

    def seconds(self, statements: Sequence[int], side: str) -> float:
        """One pass of `statements` on a side, without reductions and exchanges."""
        processor = self.machine.side(side)
        together = self.bytes_per_row(statements)
        apart = sum(self.bytes_per_row([index]) for index in statements)
        per_row = sum(self._measured(self.oplist.iteration[index], index, processor) for index in statements)
        return self.rows * per_row * (together / apart if apart else 1.0)  # measured times shrink with the traffic

    def _measured(self, statement: Statement, index: int, processor: Side) -> float:
        for key in (statement.target, statement.operator, str(statement.kind)):
            if key in processor.seconds_per_row:
                return processor.seconds_per_row[key]
        return self.bytes_per_row([index]) / processor.bytes_per_s

    def exchange_seconds(self, name: str) -> float:
        moved = self.rows * VALUE_BYTES if self.oplist.is_vector(name) else VALUE_BYTES
        return self.machine.exchange_latency_s + moved / self.machine.exchange_bytes_per_s

    def weights(self) -> dict[int, float]:
        """Of the nodes of the graph: seconds on the host, with the reduction that a dot product waits for."""
        wait = {Kind.DOT: self.machine.reduction_s}
        return {
            index: self.seconds([index], HOST) + wait.get(statement.kind, 0.0)
            for index, statement in enumerate(self.oplist.iteration)
        }


_MACHINE_KEYS = ("shared_bytes_per_s", "exchange_latency_s", "exchange_bytes_per_s", "reduction_s")


def read_machine(path: Path) -> Machine:
    """A weights file (TOML; docs/guide-krylov.md). Raises UserError for unknown names and absurd values."""
    try:
        tables = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path} cannot be read as weights ({error}). Give TOML as in docs/guide-krylov.md.") from None
    default = Machine()
    sides = {}
    for name in (HOST, DPU):
        table = dict(tables.pop(name, {})) if isinstance(tables.get(name, {}), dict) else {"": None}
        seconds = table.pop("seconds_per_row", {})
        if not isinstance(seconds, dict) or set(table) - {"bytes_per_s"}:
            raise UserError(
                f"{path}: [{name}] has what nobody reads (weights would be wrong). "
                "It may hold bytes_per_s and seconds_per_row."
            )
        per_row = {
            key: _number(path, f"{name}.seconds_per_row.{key}", value, zero=True) for key, value in seconds.items()
        }
        speed = _number(path, f"{name}.bytes_per_s", table.get("bytes_per_s", default.side(name).bytes_per_s))
        sides[name] = Side(speed, per_row)
    if unknown := set(tables) - set(_MACHINE_KEYS):
        raise UserError(
            f"{path}: '{min(unknown)}' is not a weight (misspelt?). Known: host, dpu, {', '.join(_MACHINE_KEYS)}."
        )
    values = {
        key: _number(path, key, value, zero=key.endswith("_s") and "bytes" not in key) for key, value in tables.items()
    }
    return Machine(sides[HOST], sides[DPU], **values)


def _number(path: Path, key: str, value: object, zero: bool = False) -> float:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and (value > 0 or zero and value == 0)
    if not good:
        raise UserError(f"{path}: {key} is {value!r} (times and rates are numbers above 0). Correct it.")
    return float(value)
