# SPDX-License-Identifier: BSD-3-Clause
"""The whole way from a list to a split program, and what that gains against the same list unsplit."""

from dataclasses import dataclass, replace

from offpath.split.balancing import balance
from offpath.split.costs import Costs, Side
from offpath.split.dominant import HOST, split
from offpath.split.oplist import OperationList
from offpath.split.passes import fuse, unfused
from offpath.split.prediction import Prediction, predict
from offpath.split.program import as_written, assemble, finish
from offpath.split.steps import SplitProgram


def split_program(oplist: OperationList, costs: Costs, balanced: bool = False) -> SplitProgram:
    """The dominant cycle on the host, the rest on the DPU, ordered, with exchanges and fused passes.

    `balanced`: the host takes back what the DPU is too slow for.
    """
    sides = split(oplist, costs.weights())
    return finish(fuse(oplist, balance(oplist, sides, costs) if balanced else sides, costs))


@dataclass(frozen=True)
class Comparison:
    """The same list unsplit, and split."""

    alone_blocking: Prediction  # host core, in the order of the list, standing still during reductions
    alone_overlapped: Prediction  # reductions hidden behind what does not need them
    alone_fused: Prediction  # and updates fused as in the split
    all_cores: Prediction  # the latter with what both sides together draw from memory
    split: Prediction


def compare(program: SplitProgram, costs: Costs) -> Comparison:
    oplist = program.oplist
    on_host = dict.fromkeys(range(len(oplist.iteration)), HOST)
    plain = assemble(oplist, on_host, unfused(oplist), costs)
    fused = fuse(oplist, on_host, costs)
    return Comparison(
        predict(as_written(oplist), costs, blocking=True),
        predict(plain, costs),
        predict(fused, costs),
        predict(fused, _all_cores(costs)),
        predict(program, costs),
    )


def _all_cores(costs: Costs) -> Costs:
    """One processor as fast as both; measured seconds per row shrink as the bandwidth grows."""
    machine = costs.machine
    together = min(machine.host.bytes_per_s + machine.dpu.bytes_per_s, machine.shared_bytes_per_s)
    together = max(together, machine.host.bytes_per_s)
    faster = machine.host.bytes_per_s / together
    seconds = {key: value * faster for key, value in machine.host.seconds_per_row.items()}
    return replace(costs, machine=replace(machine, host=Side(together, seconds)))
