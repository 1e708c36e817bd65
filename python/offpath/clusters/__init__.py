# SPDX-License-Identifier: BSD-3-Clause
"""A user's own cluster: what was measured there, and measuring on the nodes of a job."""

from pathlib import Path


def node_facts_file() -> Path:
    return Path(__file__).parent / "node_facts.py"
