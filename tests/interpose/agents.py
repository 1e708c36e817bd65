# SPDX-License-Identifier: BSD-3-Clause
"""Cases of a service on another machine, as far as one can be one: behind an agent, with process ids of its own."""

import os
import pathlib

from pointtopoint import wait_until
from setting import FORCED, check, same, statistics

DPU = pathlib.Path(__file__).resolve().parent.parent / "api" / "dpu.sh"


def agents(s):
    """Collectives and messages between ranks that are dealt out to two DPUs do what they do natively."""
    other = f"{s.folder}/other"
    os.mkdir(other, 0o700)
    service = f"{DPU} {os.path.join(s.build, 'bin', 'offpathd')}"
    dpus = f"exec:{service},exec:OFFPATH_RUNTIME_DIR={other} {service}"
    stats = f"{s.folder}/stats.json"
    for program, policy in (("exchange", "*:dpu"), ("messages", "*:host,send:2K-inf:dpu")):
        changes = {**FORCED, "OFFPATH_POLICY": policy, "OFFPATH_STATS_FILE": stats, "OFFPATH_DPU": dpus}
        offloaded = s.offloaded(program, ranks=3, **changes)
        same(s.native(program, ranks=3), offloaded)
        check(not offloaded.warnings(), str(offloaded))
        found = statistics(stats)
        os.unlink(stats)
        counts = [(line["messages"] if program == "messages" else line)["offloaded_count"] for line in found]
        check(all(count > 0 for count in counts), f"nothing went: {found}")
    wait_until(lambda: os.listdir(other) == [], "the service ends with its last agent")
    os.rmdir(other)


CASES = (agents,)
