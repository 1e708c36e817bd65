# SPDX-License-Identifier: BSD-3-Clause
"""DPUs that are machines: each has a first process of its own, and namespaces that live as long as that."""

import subprocess
import time
from collections.abc import Sequence

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
            process = subprocess.Popen(
                [*enter, "--boot", plan.name, dpu.place],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        started.append((dpu, process, log))
    deadline = time.monotonic() + START_LIMIT_S
    for dpu, process, log in started:
        while not (plan.state_dir / dpu.place / "init").exists():
            if process.poll() is not None or time.monotonic() >= deadline:
                said = log.read_text(errors="replace").strip().splitlines()
                raise UserError(
                    f"{dpu.place} did not start ({said[-1] if said else 'it says nothing'}). A DPU that is a machine "
                    "needs a kernel with namespaces of processes and IPC."
                )
            time.sleep(0.01)


def entry(plan: Plan, dpu: Dpu, enter: str, service: str) -> str:
    """As OFFPATH_DPU names it on its host: the lab's scripts are the way there that needs nobody who waits."""
    hosts = {core for cores in plan.node_cores for core in cores}
    share = SHARE_OPTION if hosts & set(dpu.cores) else ""
    return f"exec:{enter} {plan.name} {dpu.place} {service} {AGENTS_OPTION}{share}"
