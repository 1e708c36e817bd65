# SPDX-License-Identifier: BSD-3-Clause
"""DPUs that are machines: each has a first process of its own, and namespaces that live as long as that."""

import time
from collections.abc import Sequence

from offpath.base import processes
from offpath.base.errors import UserError
from offpath.lab.plan import Dpu, Plan

START_LIMIT_S = 20.0
AGENTS_OPTION = "--for-agents"
SHARE_OPTION = " --share"


def boot(plan: Plan, enter: Sequence[str]) -> None:
    """Starts all of them; they end with the lab. `enter`: the script. Raises UserError."""
    started = []
    for dpu in plan.dpus:
        log = plan.state_dir / dpu.place / "boot.log"
        with open(log, "wb") as output:
            started.append((dpu, processes.in_background([*enter, "--boot", plan.name, dpu.place], output), log))
    deadline = time.monotonic() + START_LIMIT_S
    for dpu, process, log in started:
        if said := processes.not_started(process, log, (plan.state_dir / dpu.place / "init").exists, deadline):
            raise UserError(
                f"{dpu.place} did not start ({said}). A DPU that is a machine needs a kernel with namespaces of "
                "processes and IPC."
            )


def entry(plan: Plan, dpu: Dpu, enter: str, service: str) -> str:
    """As OFFPATH_DPU names it on its host: the lab's scripts are the way there that needs nobody who waits."""
    hosts = {core for cores in plan.node_cores for core in cores}
    share = SHARE_OPTION if hosts & set(dpu.cores) else ""
    return f"exec:{enter} {plan.name} {dpu.place} {service} {AGENTS_OPTION}{share}"
