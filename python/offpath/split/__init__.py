# SPDX-License-Identifier: BSD-3-Clause
"""Splits a preconditioned CG variant between host and DPU. Pure functions; only `load` reads files.

oplist = load("pipecg")                      # a shipped variant or a file
costs = Costs(oplist, Machine(), rows=10**6, nonzeros_per_row=27)
program = split_program(oplist, costs)       # what each side runs, and what is exchanged
compare(program, costs).split.total_s        # predicted seconds per iteration
describe(program, costs)                     # for an executor, as JSON
"""

from offpath.split.comparing import Comparison, compare, split_program
from offpath.split.costs import Costs, Machine, Side
from offpath.split.description import describe
from offpath.split.drawing import dot_text
from offpath.split.oplist import OperationList
from offpath.split.reader import load, parse, variants
from offpath.split.steps import SplitProgram

__all__ = [
    "Comparison", "Costs", "Machine", "OperationList", "Side", "SplitProgram",
    "compare", "describe", "dot_text", "load", "parse", "split_program", "variants",
]  # fmt: skip
