# SPDX-License-Identifier: BSD-3-Clause
"""Where the service of a measured job runs: on its hosts' cores, on a DPU of each host, or on one spare node."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Optional

import typer

from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.processes import Completed
from offpath.bench.measuring import Conditions, Peer
from offpath.lab import Lab, machines
from offpath.lab.cluster import ENTER
from offpath.lab.plan import HOST_NAME, Dpu, namespace, parse_latency, parse_rate
from offpath.places import comparison
from offpath.places.comparison import CORES, LabPlace, Place

DPU, NODE = "dpu", "node"
PLACEMENTS = (CORES, DPU, NODE)
SERVICES_AT = "OFFPATH_BENCH_SERVICES_AT"  # bench/collectives/clocks.hpp

# Options of commands that measure on DPUs.
LinkRate = Annotated[
    Optional[str],
    typer.Option(help="Rate of each DPU's link to its host. Default: what the machine does.", show_default=False),
]
LinkLatency = Annotated[str, typer.Option(help="What a packet takes on it besides, like 5us.")]


@dataclass(frozen=True)
class Link:
    """Between a host and its DPU."""

    rate: str | None
    latency: str


@dataclass
class FarPlace(LabPlace):
    """Hosts of a lab whose services are on other machines."""

    node_count: int = 0  # that have ranks
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, mpi: str, argv: Sequence[str], offload: bool, env: Mapping[str, str]) -> Completed:
        np = self.ppn * self.node_count
        return self.lab.mpirun(mpi, self.ppn, argv, offload, self.variables | dict(env), self.timeout_s, np=np)


def check(names: Sequence[str], loopback: bool, link: Link) -> None:
    """Before anything is brought up. Raises UserError."""
    far = [name for name in names if name != CORES]
    if far and (loopback or not comparison.lab_is_possible()):
        raise UserError(f"There is no other machine for placement {far[0]} here (it needs the lab, and that root).")
    latency_s = parse_latency(link.latency)
    if link.rate is not None:
        parse_rate(link.rate)
    if DPU not in names and (link.rate or latency_s):
        raise UserError("Only DPUs have links of their own. Give --placement cores,dpu, too.")


def peers(names: Sequence[str], offpath: Peer) -> tuple[Peer, ...]:
    """`offpath` at each of these."""
    return tuple(offpath if name == CORES else offpath.placed(name) for name in names)


@contextlib.contextmanager
def labs(names: Sequence[str], conditions: Conditions, link: Link) -> Iterator[dict[str, Place]]:
    """A lab for each placement but the usual one; they are gone afterwards."""
    with contextlib.ExitStack() as stack:
        found: dict[str, Place] = {}
        if DPU in names:
            lab = Lab(conditions.nodes, conditions.rate, dpus=1, link_rate=link.rate, link_latency=link.latency)
            stack.enter_context(lab)
            each = f"/run/netns/{namespace(lab.name, HOST_NAME)}-dpu"
            found[DPU] = FarPlace(lab, conditions.ppn, node_count=conditions.nodes, variables={SERVICES_AT: each})
        if NODE in names:
            lab = stack.enter_context(Lab(conditions.nodes + 1, conditions.rate, dpus=1))
            spare = lab.plan.dpus[-1]  # a machine at the last node's port, which has no ranks
            found[NODE] = FarPlace(lab, conditions.ppn, node_count=conditions.nodes, variables=_all_to(lab, spare))
        yield found


def _all_to(lab: Lab, spare: Dpu) -> dict[str, str]:
    entry = machines.entry(lab.plan, spare, str(ENTER), str(paths().service))
    return {"OFFPATH_DPUS": f"*={entry}", SERVICES_AT: f"/run/netns/{namespace(lab.name, spare.place)}"}


def costs(row: dict) -> dict:
    """Processor time per byte that a rank sends or receives: on the hosts, beyond the computation, and the service's
    where it is elsewhere."""
    moved = row["ranks"] * row["bytes"]
    host = row["host_cpu_ns"] + row["agent_cpu_ns"] - row["compute_cpu_ns"]
    far = row["placement"] in (DPU, NODE)
    return {
        "host_cpu_ns_per_byte": (host if far else host + row["service_cpu_ns"]) / moved,
        "service_cpu_ns_per_byte": row["service_cpu_ns"] / moved,
    }
