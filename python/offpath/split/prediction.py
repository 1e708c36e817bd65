# SPDX-License-Identifier: BSD-3-Clause
"""Time per iteration in the steady state: both sides in their order, waiting for exchanges and reductions."""

from dataclasses import dataclass

from offpath.split.costs import Costs
from offpath.split.oplist import Kind
from offpath.split.steps import SIDES, Pass, Receive, Reduce, SplitProgram

_WARM_UP, _MEASURED = 8, 24


@dataclass(frozen=True)
class Prediction:
    """Seconds of one iteration. roof_s: what the shared memory allows; total_s is the larger of schedule and roof."""

    total_s: float
    schedule_s: float
    roof_s: float
    busy_s: dict[str, float]  # of each side
    bytes_per_row: dict[str, float]


def predict(program: SplitProgram, costs: Costs, blocking: bool = False) -> Prediction:
    """`blocking`: a side stands still during its reductions."""
    passes = {side: [step for step in program.steps[side] if isinstance(step, Pass)] for side in SIDES}
    traffic = {side: sum(costs.bytes_per_row(each.statements) for each in passes[side]) for side in SIDES}
    busy = {side: sum(costs.seconds(each.statements, side) for each in passes[side]) for side in SIDES}
    schedule = _steady_state(program, costs, blocking)
    roof = costs.rows * sum(traffic.values()) / costs.machine.shared_bytes_per_s
    return Prediction(max(schedule, roof), schedule, roof, busy, traffic)


def _steady_state(program: SplitProgram, costs: Costs, blocking: bool) -> float:
    run = _Run(program, costs, blocking)
    run.advance(_WARM_UP)
    start = max(run.clock.values())
    run.advance(_WARM_UP + _MEASURED)
    return (max(run.clock.values()) - start) / _MEASURED


class _Run:
    """Plays the steps of both sides; a value is sent when it is ready, and its sender does not wait."""

    def __init__(self, program: SplitProgram, costs: Costs, blocking: bool):
        self.program, self.costs, self.blocking = program, costs, blocking
        self.clock = dict.fromkeys(SIDES, 0.0)
        self.ready: dict[tuple[str, str], float] = {}  # when a side has a name's present value
        self.sent: dict[tuple[str, int], float] = {}
        self.position = dict.fromkeys(SIDES, 0)
        self.exchanges = {each.name: each for each in program.exchanges}
        self.seconds = {
            (side, step): costs.seconds(step.statements, side)
            for side in SIDES for step in program.steps[side] if isinstance(step, Pass)
        }  # fmt: skip

    def advance(self, iterations: int) -> None:
        moved = True
        while moved:
            moved = any([self._advance(side, iterations) for side in SIDES])

    def _advance(self, side: str, iterations: int) -> bool:
        steps, before = self.program.steps[side], self.position[side]
        while self.position[side] < iterations * len(steps):
            iteration, index = divmod(self.position[side], len(steps))
            if not self._step(side, steps[index], iteration):
                break
            self.position[side] += 1
        return self.position[side] > before

    def _step(self, side: str, step, iteration: int) -> bool:
        if isinstance(step, Receive):
            version = iteration - self.exchanges[step.name].carried
            if version >= 0 and (step.name, version) not in self.sent:
                return False
            self.ready[side, step.name] = self.sent.get((step.name, version), 0.0)
        elif isinstance(step, Reduce):
            done = self.clock[side] + self.costs.machine.reduction_s
            if self.blocking:
                self.clock[side] = done
            for name in step.names:
                self._made(side, name, iteration, done)
        else:
            statements = [self.program.oplist.iteration[index] for index in step.statements]
            needed = [self.ready.get((side, name), 0.0) for each in statements for name in each.reads]
            self.clock[side] = max([self.clock[side], *needed]) + self.seconds[side, step]
            for each in statements:
                if each.target and each.kind != Kind.DOT:
                    self._made(side, each.target, iteration, self.clock[side])
        return True

    def _made(self, side: str, name: str, iteration: int, when: float) -> None:
        self.ready[side, name] = when
        if name in self.exchanges:
            self.sent[name, iteration] = when + self.costs.exchange_seconds(name)
