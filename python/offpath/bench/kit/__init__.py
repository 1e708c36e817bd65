# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks have in common: cases that take turns, rows, tables, goals, and what speaks against a result.

A benchmark is its cases (turns.Case), and a description of what is said of their rows (benchmark.Benchmark)."""
