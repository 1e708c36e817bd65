# SPDX-License-Identifier: BSD-3-Clause
"""What a lab looks like: names, addresses, cores, limits. Pure: nothing here touches the machine."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath.base import sizes
from offpath.base.errors import UserError

STATE_ROOT = Path("/run/offpath-lab")
HEAD = "head"
HOST_NAME = "%h"  # in names that each host completes for itself
SUBNET = "10.99.0"
SUBNET_BITS = 24
HEAD_ADDRESS = f"{SUBNET}.254"
MAX_NODES = 64
MAX_DPUS = 2  # of a node; more addresses there are not
MAX_SLOWDOWN = 100.0

# Below about 64 KiB the kernel must cut its large segments up before they pass the limiter, which costs processor time
# that no network card would charge; far above, short messages slip through at more than the nominal rate.
BURST_BYTES = 128 * 1024
QUEUE_MS = 50

LEAST_RATE, MOST_RATE = "1mbit", "100gbit"  # what the kernel's limiter keeps to
_LATENCY = re.compile(r"^(\d+(?:\.\d+)?)(us|ms)$")
_LATENCY_UNIT = {"us": 1e-6, "ms": 1e-3}
MAX_LATENCY_S = 0.1
MAX_LOSS_PERCENT = 50.0
_NAME = re.compile(r"^[a-z][a-z0-9]{0,19}$")


def parse_rate(text: str) -> int:
    """Bits per second of a link that this machine emulates. Raises UserError for anything else."""
    return sizes.parse_rate(text, LEAST_RATE, MOST_RATE, "the lab's")


def parse_latency(text: str) -> float:
    """Seconds of a latency such as 200us or 1ms; 0 is none. Raises UserError for anything else."""
    match = _LATENCY.match(text.strip().lower())
    latency_s = float(match[1]) * _LATENCY_UNIT[match[2]] if match else 0.0 if text.strip() == "0" else -1.0
    if not 0 <= latency_s <= MAX_LATENCY_S:
        raise UserError(f"'{text}' is not a link's latency. Give 0, or one up to 100ms such as 200us or 1ms.")
    return latency_s


@dataclass(frozen=True)
class Machines:
    """DPUs that share nothing with their hosts but a link."""

    per_node: int = 1
    dpu_cores: tuple[tuple[int, ...], ...] = ()  # of each DPU of the lab; empty: its node's
    link_rate_bits_per_s: int | None = None  # in each direction; None: whatever the machine does
    link_latency_s: float = 0.0  # one way

    @classmethod
    def make(cls, nodes: int, per_node: int, cores_each: int, rate: str | None, latency: str, cores: Sequence[int],
             first: int) -> Machines:  # fmt: skip
        """`first`: how many of `cores` the nodes have."""
        if not 1 <= per_node <= MAX_DPUS:
            raise UserError(f"A node cannot have {per_node} DPUs. Give 1 to {MAX_DPUS}.")
        if not 0 <= cores_each <= len(cores):
            raise UserError(f"A DPU cannot have {cores_each} cores. This machine has {len(cores)}.")
        own = dealt(nodes * per_node, cores_each, cores, first) if cores_each else ()
        return cls(per_node, own, parse_rate(rate) if rate else None, parse_latency(latency))


def dealt(count: int, each: int, cores: Sequence[int], first: int = 0) -> tuple[tuple[int, ...], ...]:
    """Cores of `count` machines with `each`, in turn; they share cores where there are too few."""
    return tuple(
        tuple(sorted({cores[(first + machine * each + k) % len(cores)] for k in range(each)}))
        for machine in range(count)
    )


@dataclass(frozen=True)
class Loss:
    """What links lose, in percent of their packets. Packets are then no longer than the MTU, as on a real link: without
    loss the kernel hands over many at a time."""

    up: float = 0.0  # on the way from a node to the switch: whoever else gets a copy misses the same ones
    down: float = 0.0  # from the switch to a node: each node misses others
    only_multicast: bool = False

    @classmethod
    def make(cls, up: float = 0.0, down: float = 0.0, only_multicast: bool = False) -> Loss | None:
        for percent in (up, down):
            if not 0 <= percent <= MAX_LOSS_PERCENT:
                raise UserError(f"Links cannot lose {percent:g} % of their packets. Give 0 to {MAX_LOSS_PERCENT:g}.")
        return cls(up, down, only_multicast) if up or down else None


@dataclass(frozen=True)
class Dpu:
    """A DPU's place in a lab, as its network sees it."""

    place: str
    node: str
    node_number: int
    number: int  # of its node's
    address: str
    cores: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """One lab as asked for. `make` checks; a Plan that exists makes sense."""

    name: str
    node_count: int
    rate_bits_per_s: int
    mtu_bytes: int
    dpu_slowdown: float
    node_cores: tuple[tuple[int, ...], ...]
    latency_s: float = 0.0  # one way, between two nodes, besides what the machine takes
    dpu_arch: str | None = None  # of the device service that each DPU runs; None: it runs none
    machines: Machines | None = None  # None: a DPU is its node with a network of its own
    loss: Loss | None = None
    rdma: bool = False  # each node is a virtual machine, with a kernel and an RDMA device of its own, and no DPU

    @classmethod
    def make(
        cls, name: str, nodes: int, rate: str, mtu: int, dpu_slowdown: float, cores_per_node: int, cores: Sequence[int]
    ) -> Plan:
        check_name(name)
        if not 1 <= nodes <= MAX_NODES:
            raise UserError(f"A lab cannot have {nodes} nodes. Give a number from 1 to {MAX_NODES}.")
        if not 1280 <= mtu <= 65535:
            raise UserError(f"An MTU of {mtu} bytes is out of range. Give 1280 to 65535, such as 1500 or 9000.")
        if not (math.isfinite(dpu_slowdown) and 1.0 <= dpu_slowdown <= MAX_SLOWDOWN):
            raise UserError(f"A DPU cannot be {dpu_slowdown:g} times slower. Give 1 to {MAX_SLOWDOWN:g}.")
        if not 1 <= cores_per_node <= len(cores):
            raise UserError(f"A node cannot have {cores_per_node} cores. This machine has {len(cores)}.")
        return cls(name, nodes, parse_rate(rate), mtu, dpu_slowdown, dealt(nodes, cores_per_node, cores))

    @property
    def nodes(self) -> list[str]:
        return [f"node{i}" for i in range(1, self.node_count + 1)]

    @property
    def places(self) -> list[str]:
        return [HEAD, *self.nodes, *(dpu.place for dpu in self.dpus)]

    @property
    def dpus(self) -> list[Dpu]:
        """Node by node."""
        found = []
        each = self.machines.per_node if self.machines else 0 if self.rdma else 1
        for index, node in enumerate(self.nodes):
            for number in range(1, each + 1):
                own = (
                    self.machines.dpu_cores[index * each + number - 1 : index * each + number] if self.machines else ()
                )
                place = f"{node}-dpu" + (str(number) if number > 1 else "")
                address = dpu_address(index + 1, number)
                found.append(Dpu(place, node, index + 1, number, address, own[0] if own else self.node_cores[index]))
        return found

    def dpus_of(self, node: str) -> list[Dpu]:
        return [dpu for dpu in self.dpus if dpu.node == node]

    @property
    def state_dir(self) -> Path:
        return STATE_ROOT / self.name

    def runtime_folder(self, node: str) -> Path:
        """Where the sockets of the node's services are: in its own /tmp."""
        return self.state_dir / node / "tmp" / f"offpath-{os.getuid()}"

    def cores_of(self, node_index: int) -> str:
        return ",".join(map(str, self.node_cores[node_index]))

    def hosts_file(self) -> str:
        lines = ["127.0.0.1 localhost", f"{HEAD_ADDRESS} {HEAD}"]
        for i, node in enumerate(self.nodes, start=1):
            lines += [f"{host_address(i)} {node}", *(f"{dpu.address} {dpu.place}" for dpu in self.dpus_of(node))]
        return "\n".join(lines) + "\n"


def check_name(name: str) -> None:
    if not _NAME.match(name):
        raise UserError(f"'{name}' cannot name a lab. Use up to 20 small letters and digits, a letter first.")


def namespace(name: str, place: str) -> str:
    return f"offpath-{name}-{place}"


def place_of_namespace(name: str, candidate: str) -> str | None:
    """The place that `candidate` is in lab `name`; None when it belongs to something else."""
    match = re.match(rf"^offpath-{re.escape(name)}-(head|node\d+(?:-dpu\d?)?)$", candidate)
    return match[1] if match else None


def lab_of_namespace(candidate: str) -> str | None:
    match = re.match(r"^offpath-([a-z][a-z0-9]*)-(?:head|node\d+(?:-dpu\d?)?)$", candidate)
    return match[1] if match else None


def host_address(number: int) -> str:
    return f"{SUBNET}.{number}"


def dpu_address(number: int, dpu: int = 1) -> str:
    """`number`: its node's; `dpu`: which of that node."""
    return f"{SUBNET}.{100 + (dpu - 1) * MAX_NODES + number}"
