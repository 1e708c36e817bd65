# SPDX-License-Identifier: BSD-3-Clause
"""Slurm's short forms of lists: nodes "n[01-03,7],login" and counts "2(x3),1"."""

from __future__ import annotations

import re


def first_host(nodes: str) -> str:
    """The first node of a list."""
    match = re.match(r"([^,\[]+)(?:\[([^,\]\-]+)[^\]]*\]([^,\[]*))?", nodes)
    return "".join(part or "" for part in match.groups()) if match else ""


def tasks_of_node(counts: str, node: int) -> int:
    """How many tasks node number `node` has; 0 where that is not said."""
    for part in counts.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            return 0
        repeated = int(match[2] or 1)
        if node < repeated:
            return int(match[1])
        node -= repeated
    return 0
