# SPDX-License-Identifier: BSD-3-Clause
"""The command line: which commands there are, and how their errors look."""
