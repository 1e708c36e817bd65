# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks have in common: cases that take turns, rows, tables, goals, and what speaks against a result.

A benchmark is its cases (turns.Case), and a description of what is said of their rows (benchmark.Benchmark)."""

from offpath.bench.kit.benchmark import Benchmark, Page
from offpath.bench.kit.tables import Line, Table
from offpath.bench.kit.turns import FAILED, Case, Site

__all__ = ["FAILED", "Benchmark", "Case", "Line", "Page", "Site", "Table"]
