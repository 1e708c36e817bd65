# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that are virtual machines: each has a kernel and an RDMA device of its own. Times mean nothing in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from offpath.base import processes
from offpath.base.errors import UserError
from offpath.base.paths import source_root
from offpath.lab.plan import SUBNET_BITS, Plan, host_address, namespace

QEMU = "qemu-system-x86_64"
GUEST = Path(__file__).parent / "guest"
MEMORY_MIB = 2048
START_LIMIT_S = 240.0  # on a busy machine; alone it takes a tenth
PROBE_LIMIT_S = 5.0
# In a shell, as starting Python takes seconds there.
END_RUN = """
left() { grep -lszx "$0" /proc/[0-9]*/environ | cut -d/ -f3; }
end=$(($(date +%s) + $1))
while [ -n "$(left)" ] && [ "$(date +%s)" -lt "$end" ]; do sleep 0.1; done
while [ -n "$(left)" ]; do kill -KILL $(left) 2>/dev/null; done
"""
PROBED = b"offpath-machine"


def boot_folder() -> Path:
    """What they boot. Raises UserError where it is not there."""
    root = source_root()
    folder = root / ".machines" if root else None
    if folder is None or not (folder / "ready").exists() or not shutil.which(QEMU):
        raise UserError("Nodes with RDMA are virtual machines (what they boot is missing). Run: tools/setup test")
    return folder


def boot(plan: Plan) -> None:
    """Starts all of them, and returns when each takes commands; they end with the lab. Raises UserError."""
    folder = boot_folder()
    processor = _processor(folder)
    started = []
    for index, node in enumerate(plan.nodes):
        place = ["nsenter", f"--net=/run/netns/{namespace(plan.name, node)}", "taskset", "-c", plan.cores_of(index)]
        log = plan.state_dir / node / "boot.log"
        with open(log, "wb") as output:
            command = [*place, *_machine(folder, processor, len(plan.node_cores[index])), *_parts(plan, index + 1)]
            process = processes.in_background(command, output)
        started.append((node, process, log))
    deadline = time.monotonic() + START_LIMIT_S
    for node, process, log in started:
        if said := processes.not_started(process, log, (plan.state_dir / node / "ready").exists, deadline):
            raise UserError(f"{node} did not start ({said}). Is this machine too busy for {QEMU}?")


def end_run(plan: Plan, inside: Callable[[str, Sequence[str]], list[str]], run_id: str, patience_s: float) -> None:
    """What inventory.end_processes does for the processes of this machine, in each of them."""
    words = ["sh", "-c", END_RUN, f"OFFPATH_LAB_RUN={run_id}", str(round(patience_s))]
    started = [subprocess.Popen(inside(node, words), stdin=subprocess.DEVNULL) for node in plan.nodes]
    for process in started:
        process.wait()


def _machine(folder: Path, processor: list[str], cores: int) -> list[str]:
    return [
        QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
        *processor, "-smp", str(cores), "-m", str(MEMORY_MIB),
        "-kernel", str(folder / "kernel"), "-initrd", str(folder / "initial.gz"),
    ]  # fmt: skip


def _parts(plan: Plan, number: int) -> list[str]:
    place = plan.nodes[number - 1]
    first = (
        f"/bin/sh {GUEST} {plan.name} {place} {host_address(number)}/{SUBNET_BITS} {plan.mtu_bytes}"
        f" {os.environ.get('HOME', '/tmp')} {os.path.realpath('/usr/bin/python3')}"
    )
    return [
        "-netdev", "tap,id=net,ifname=tap0,script=no,downscript=no",
        "-device", f"virtio-net-pci,netdev=net,romfile=,mac=52:54:00:00:00:{number:02x}",
        # Its files are ours, and it cannot write to them but in the lab's own folder.
        "-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
        "-virtfs", f"local,path={plan.state_dir},mount_tag=state,security_model=none,multidevs=remap",
        "-append", f"console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on -- {first}",
    ]  # fmt: skip


def _processor(folder: Path) -> list[str]:
    """With the help of the hardware where that works: a device that is there may still hang."""
    helped = ["-machine", "q35,accel=kvm", "-cpu", "host"]
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        probe = [*_machine(folder, helped, 1), "-append", "console=ttyS0 quiet panic=-1 -- probe"]
        try:
            said = subprocess.run(
                probe, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PROBE_LIMIT_S
            )
            if PROBED in said.stdout:
                return helped
        except subprocess.TimeoutExpired:
            pass
    return ["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]
