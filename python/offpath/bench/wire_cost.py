# SPDX-License-Identifier: BSD-3-Clause
"""What a lab's wire takes from whoever computes beside it: two processes (offpath-wire) exchange blocks as cheaply as a
kernel lets them while a process on the same core computes."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence

from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import size_text
from offpath.bench.goals import MIN_BYTES
from offpath.bench.kit import FAILED, programs
from offpath.lab import Lab
from offpath.lab.plan import host_address

LISTENING = "listening "
PATIENCE_S = 120.0
SHARES = ("slowdown", "process_share", "interrupt_share", "reachable_efficiency")
MEASURED = ("wire_ns", "beside_ns", *SHARES)
SHORT_MS = 300  # of each measurement, where it is only shown beside another benchmark's results


def launch(sizes: Sequence[int], milliseconds: int, lab: Lab) -> list[dict]:
    """Between the first two nodes of the lab, one row for each size."""
    program = str(paths().tool("offpath-wire"))
    options = ["--sizes", ",".join(map(str, sizes)), "--milliseconds", str(milliseconds)]
    address, core = host_address(2), [cores[0] for cores in lab.plan.node_cores]
    listens = [program, "--listen", f"{address}:0", "--core", str(core[1]), *options]
    with subprocess.Popen(lab.inside("node2", listens), stdout=subprocess.PIPE, text=True) as listener:
        watchdog = threading.Timer(PATIENCE_S, listener.kill)
        watchdog.start()
        try:
            line = listener.stdout.readline()
            if not line.startswith(LISTENING):
                raise UserError("The wire cannot be measured (its program did not start). Run: make build", FAILED)
            port = line.removeprefix(LISTENING).strip()
            connects = [program, "--connect", f"{address}:{port}", "--core", str(core[0]), *options]
            found = programs.json_output(lab.inside("node1", connects))
        finally:
            watchdog.cancel()
            listener.kill()
    return [{name: row[name] for name in ("bytes", *MEASURED)} | {"verified": True} for row in found]


def reachable(where: object, sizes: Sequence[int]) -> dict[str, float]:
    """The efficiency that the best of all services could reach there, by size: shown beside what was measured. Empty
    where there is no wire, or only sizes that sockets hide by themselves."""
    lab, long = getattr(where, "lab", None), sorted({size for size in sizes if size >= MIN_BYTES})
    if lab is None or lab.plan.node_count < 2 or not long:
        return {}
    return {size_text(row["bytes"]): row["reachable_efficiency"] for row in launch(long, SHORT_MS, lab)}
