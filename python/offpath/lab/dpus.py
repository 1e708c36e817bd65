# SPDX-License-Identifier: BSD-3-Clause
"""Device services on a lab's DPUs: target regions of a node's programs run on its own DPU, behind its own port."""

from collections.abc import Callable, Sequence
from pathlib import Path

from offpath.base import processes
from offpath.base.files import new_secret
from offpath.dpu import service
from offpath.lab.plan import Plan

PORT = 7001


def start(plan: Plan, inside: Callable[[str, Sequence[str]], list[str]]) -> None:
    """One service in each DPU's place, on its node's cores; they end with the lab. Raises UserError.

    `inside`: the command line that runs another at a place of the lab. The agent gives programs on nodeI what `devices`
    in the node's folder says.
    """
    key = _key_file(plan)
    new_secret(key)
    started = []
    for dpu in plan.dpus:
        address = f"{dpu.address}:{PORT}"
        options = service.Options(dpu.place, plan.dpu_arch, address, key, ",".join(map(str, dpu.cores)))
        log = plan.state_dir / dpu.node / f"device{dpu.number if dpu.number > 1 else ''}.log"
        with open(log, "wb") as output:
            process = processes.in_background(inside(dpu.place, service.command(options)), output)
        listed = plan.state_dir / dpu.node / "devices"
        before = listed.read_text().strip() + "," if listed.exists() else ""
        listed.write_text(f"{before}{options.name}={address}/{plan.dpu_arch}\n")
        started.append((process, address, log))
    for process, address, log in started:
        service.await_listening(process, address, log)


def variables(plan: Plan) -> dict[str, str]:
    """By which commands in the lab may use them."""
    return {service.KEY_VARIABLE: str(_key_file(plan))} if plan.dpu_arch else {}


def _key_file(plan: Plan) -> Path:
    return plan.state_dir / "device.key"
