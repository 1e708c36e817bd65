# SPDX-License-Identifier: BSD-3-Clause
"""The epochs of `offpath bench training`: one training in several ways, in turns, with executors at some place.

Whatever trains has the first core, whatever helps the last one: several nodes share both, so that each has as much of
a helper as one node alone.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench.kit import FAILED, Table, programs
from offpath.bench.placements import DPU, NODE
from offpath.lab import Lab, machines
from offpath.lab.cluster import ENTER
from offpath.lab.plan import host_address
from offpath.launch.local import available_cores
from offpath.places.comparison import CORES
from offpath.plan.training import median_epoch, predict

LIMIT_S = 600
PORT = "29500"
OURS = {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}  # for another interpreter
_TITLES = {CORES: "a core of the host", DPU: "a DPU", NODE: "a spare node"}
TABLE = Table(
    lambda row: f"An epoch: {row['nodes']} node{'s' if row['nodes'] > 1 else ''}, "
                f"executors on {_TITLES[row['placement']]}",
    [
        ("way", "{way}"), ("epoch s", "{epoch_s:.3f}"), ("min", "{epoch_min_s:.3f}"), ("max", "{epoch_max_s:.3f}"),
        ("foretold", "{predicted_s:.3f}"), ("samples/s", "{samples_per_s:.0f}"), ("core", "{host_cpu:.2f}"),
        ("gain", "{gain:.2f}"), ("loss", "{last_loss:.4f}"),
    ],
    of="epochs",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Where:
    """Executors at `placement`, for a training on so many nodes of a lab; one node and CORES: without a lab."""

    placement: str
    nodes: int
    rate: str
    link_rate: str | None

    @property
    def in_lab(self) -> bool:
        return self.nodes > 1 or self.placement != CORES


def launch(python: str, where: Where, arguments: Sequence[str]) -> dict:
    command = [python, "-m", "offpath.torch.epochs", *arguments]
    if not where.in_lab:
        run = subprocess.run(command, env=os.environ | OURS, capture_output=True, text=True, timeout=LIMIT_S)
        return said(run.returncode, run.stdout, run.stderr)
    cores = available_cores()
    spare = where.placement == NODE
    lab = Lab(where.nodes + spare, where.rate, dpus=0 if where.placement == CORES else 1, link_rate=_link(where))
    helped = cores[0] if where.placement != CORES else cores[-1]  # torch's workers have the host's cores only
    command += ["--cores", f"{cores[0]}:{helped}"]
    lab.plan = _on_two_cores(lab, cores)
    with lab:
        env = OURS | {"GLOO_SOCKET_IFNAME": "eth0", "MASTER_ADDR": host_address(1), "MASTER_PORT": PORT}
        if where.nodes > 1:
            command.append("--several")
        if where.placement == CORES:
            env |= {"OFFPATH_SERVICE_WRAPPER": f"{ENTER} {lab.name} %h-dpu", "OFFPATH_SERVICE_SHARE": "1"}
        else:
            command.append("--service-elsewhere")
            env |= {"OFFPATH_DPUS": ";".join(_entries(lab, where))}
        run = lab.mpirun("openmpi", 1, command, env=env, timeout=LIMIT_S, np=where.nodes)
    return said(run.returncode, run.stdout, run.stderr)


def _link(where: Where) -> str | None:
    return where.link_rate if where.placement == DPU else None


def _on_two_cores(lab: Lab, cores: Sequence[int]) -> object:
    """The lab's plan with hosts on the first core and DPUs on the last."""
    plan = dataclasses.replace(lab.plan, node_cores=((cores[0],),) * lab.plan.node_count)
    if plan.machines is None:
        return plan
    own = dataclasses.replace(plan.machines, dpu_cores=((cores[-1],),) * plan.node_count)
    return dataclasses.replace(plan, machines=own)


def _entries(lab: Lab, where: Where) -> Iterator[str]:
    """OFFPATH_DPUS: each host's own DPU, or the last node's for all. Two executors each, as a validation must not
    stand in the way of batches."""
    share = machines.SHARE_OPTION if where.nodes > 1 else ""
    chosen = lab.plan.dpus[-1:] if where.placement == NODE else lab.plan.dpus
    for dpu in chosen:
        entry = machines.entry(lab.plan, dpu, str(ENTER), f"env OFFPATH_TASK_EXECUTORS=2 {paths().service}")
        host = "*" if where.placement == NODE else dpu.node
        yield f"{host}={entry}{share}"


def said(status: int, out: str, err: str) -> dict:
    if status != 0:
        raise UserError(f"A launch of the training failed: {programs.problem(out, err)}.", FAILED)
    return json.loads(out.strip().splitlines()[-1])


def rows(where: Where, launches: Sequence[Mapping]) -> list[dict]:
    """One for each way: medians of the launches' medians."""
    found = []
    profiles = [epoch for one in launches for epoch in one["profile"]]
    predicted = predict(median_epoch(profiles)) if where.nodes == 1 else {}
    for way in launches[0]["epochs"]:
        medians = [statistics.median(one["epochs"][way]) for one in launches]
        hosts = [statistics.median(one["epochs"]["host"]) for one in launches]
        found.append({
            "placement": where.placement, "nodes": where.nodes, "way": way, "epoch_s": statistics.median(medians),
            "epoch_min_s": min(medians), "epoch_max_s": max(medians),
            "gain": statistics.median(host / own for host, own in zip(hosts, medians)),
            "predicted_s": predicted.get(way), "samples_per_s": launches[0]["samples"] / statistics.median(medians),
            "host_cpu": statistics.median(one["host_cpu"][way] for one in launches),
            "last_loss": statistics.median(one["last_losses"][way] for one in launches),
            "runs": len(launches),
            "verified": all(one["verified"] for one in launches),
        })  # fmt: skip
    return found
