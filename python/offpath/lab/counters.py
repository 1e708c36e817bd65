# SPDX-License-Identifier: BSD-3-Clause
"""What a lab's switch has counted on the link of each node."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from offpath.lab.plan import HEAD, Plan, namespace


@dataclass(frozen=True)
class LinkBytes:
    up: int  # from the node to the switch, with headers of Ethernet
    down: int

    def since(self, before: LinkBytes) -> LinkBytes:
        return LinkBytes(self.up - before.up, self.down - before.down)


def link_bytes(plan: Plan) -> list[LinkBytes]:
    """By node."""
    files = [
        f"/sys/class/net/port{number}/statistics/{direction}_bytes"
        for number in range(1, plan.node_count + 1)
        for direction in ("rx", "tx")
    ]
    command = ["ip", "netns", "exec", namespace(plan.name, HEAD), "cat", *files]
    counts = [int(word) for word in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()]
    return [LinkBytes(up, down) for up, down in zip(counts[0::2], counts[1::2])]
