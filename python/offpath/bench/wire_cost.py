# SPDX-License-Identifier: BSD-3-Clause
"""What a lab's wire takes from whoever computes beside it: two processes (offpath-wire) exchange blocks as cheaply as a
kernel lets them while a process on the same core computes."""

from __future__ import annotations

import json
import statistics
import subprocess
import threading
from collections.abc import Sequence

from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import size_text
from offpath.bench.goals import MIN_BYTES
from offpath.lab import Lab
from offpath.lab.plan import host_address

LISTENING = "listening "
PATIENCE_S = 120.0
TIMES = ("wire_ns", "beside_ns")
SHARES = ("slowdown", "process_share", "interrupt_share", "reachable_efficiency")
SHORT_MS = 300  # of each measurement, where it is only shown beside another benchmark's results


def measure(rate: str, sizes: Sequence[int], runs: int, milliseconds: int) -> list[dict]:
    """One row for each size, in a lab of its own."""
    with Lab(nodes=2, rate=rate) as lab:
        return measure_in(lab, sizes, runs, milliseconds)


def measure_in(lab: Lab, sizes: Sequence[int], runs: int, milliseconds: int) -> list[dict]:
    """Between the first two nodes of a lab; medians, with the lowest and the highest."""
    launches = [_launch(lab, sizes, milliseconds) for _ in range(runs)]
    rows = []
    for index, size in enumerate(sizes):
        samples = [launch[index] for launch in launches]
        row = {"rate_bits_per_s": lab.plan.rate_bits_per_s, "bytes": size, "runs": runs, "verified": True}
        for name in (*TIMES, *SHARES):
            values = [sample[name] for sample in samples]
            digits = 0 if name in TIMES else 4
            row[name] = round(statistics.median(values), digits)
            row[f"{name}_min"], row[f"{name}_max"] = round(min(values), digits), round(max(values), digits)
        rows.append(row)
    return rows


def _launch(lab: Lab, sizes: Sequence[int], milliseconds: int) -> list[dict]:
    program = str(paths().require_wire_program())
    options = ["--sizes", ",".join(map(str, sizes)), "--milliseconds", str(milliseconds)]
    address, core = host_address(2), [cores[0] for cores in lab.plan.node_cores]
    listens = [program, "--listen", f"{address}:0", "--core", str(core[1]), *options]
    with subprocess.Popen(lab.inside("node2", listens), stdout=subprocess.PIPE, text=True) as listener:
        watchdog = threading.Timer(PATIENCE_S, listener.kill)
        watchdog.start()
        try:
            line = listener.stdout.readline()
            if not line.startswith(LISTENING):
                raise UserError("The wire cannot be measured (its program did not start). Run: make build", 1)
            port = line.removeprefix(LISTENING).strip()
            connects = [program, "--connect", f"{address}:{port}", "--core", str(core[0]), *options]
            done = subprocess.run(lab.inside("node1", connects), capture_output=True, text=True, timeout=PATIENCE_S)
        finally:
            watchdog.cancel()
            listener.kill()
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise UserError(f"The wire cannot be measured ({said[-1]}). Is the machine busy? Try again.", 1)
    return json.loads(done.stdout)


def reachable(where: object, sizes: Sequence[int]) -> dict[str, float]:
    """The efficiency that the best of all services could reach there, by size: shown beside what was measured. Empty
    where there is no wire, or only sizes that sockets hide by themselves."""
    lab, long = getattr(where, "lab", None), sorted({size for size in sizes if size >= MIN_BYTES})
    if lab is None or lab.plan.node_count < 2 or not long:
        return {}
    return {size_text(row["bytes"]): row["reachable_efficiency"] for row in measure_in(lab, long, 1, SHORT_MS)}
