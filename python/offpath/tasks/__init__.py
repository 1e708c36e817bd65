# SPDX-License-Identifier: BSD-3-Clause
"""Python functions as tasks: what a program sends, and the interpreter next to an executor that runs it."""
