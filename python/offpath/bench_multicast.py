# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench multicast`: broadcast and allgather by multicast beside ring, chain and the MPIs: time, processor
time of the services, and the bytes on each link of the lab."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich import box
from rich.table import Table

from offpath import comparison, console, measuring, results
from offpath.errors import UserError
from offpath.lab import Lab
from offpath.lab.counters import LinkBytes, link_bytes
from offpath.lab.plan import parse_rate
from offpath.paths import paths
from offpath.sizes import parse_sizes, size_text

PEERS = {"ibcast": ("multicast", "chain"), "iallgather": ("multicast", "ring", "direct")}
HEADROOM = 0.95  # of the link's rate is what multicast may take: switches drop what comes in faster than it leaves


def app_command(
    nodes: Annotated[str, typer.Option(help="Nodes of the labs, separated by commas.")] = "2,4,8",
    rate: Annotated[str, typer.Option(help="Rate of the lab's links.")] = "250mbit",
    sizes: Annotated[str, typer.Option(help="All bytes that a rank receives.")] = "1M,4M",
    collectives: Annotated[str, typer.Option(help="Which, separated by commas.")] = "ibcast,iallgather",
    chains: Annotated[str, typer.Option(help="Nodes that multicast at the same time, separated by commas.")] = "2",
    overdrive: Annotated[
        float, typer.Option(min=0.1, help="Multicast so many times as fast: above 1 the switch loses datagrams.")
    ] = 1,
    hosts: Annotated[bool, typer.Option("--hosts/--no-hosts", help="Measure both MPIs alone, too.")] = True,
    repeats: Annotated[int, typer.Option(min=2, help="Repeats of each.")] = 10,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Write the results there.")] = None,
) -> None:
    """Measure broadcast and allgather by multicast in a lab, beside what there is otherwise.

    time is t_pure, the median of the slowest rank; service is the processor time of all services for one operation. up
    and down are the most bytes that an operation puts on a link to the switch, and from it, over the bytes of one
    copy: what a node has to send itself, and what it has to receive. They are counted by the switch.

    Example:

        offpath bench multicast --nodes 4 --sizes 1M --repeats 5 --json multicast.json
    """
    byte_sizes = parse_sizes(sizes)
    names = measuring.parse_names(collectives, PEERS, "a collective")
    counts = [int(word) for word in nodes.split(",") if word.isdigit()]
    wanted_chains = [int(word) for word in chains.split(",") if word.isdigit()]
    if not counts or min(counts) < 2 or not wanted_chains or min(wanted_chains) < 1:
        raise UserError(f"'{nodes}' nodes and '{chains}' chains cannot be measured. Give numbers, of nodes at least 2.")
    bits = parse_rate(rate)
    comparison.writable_file(json_file, "--json")
    if not comparison.lab_is_possible():
        raise UserError("Multicast is measured in a lab (which needs root). Run it as root.")
    rows = []
    for count in counts:
        with Lab(nodes=count, rate=rate) as lab:
            for name in names:
                for size in byte_sizes:
                    for peer in PEERS[name]:
                        for chain in wanted_chains if peer == "multicast" else wanted_chains[:1]:
                            env = {
                                "OFFPATH_POLICY": f"{name}:0-inf:dpu={peer}",
                                "OFFPATH_MULTICAST_RATE": str(int(bits * HEADROOM * overdrive)),
                                "OFFPATH_MULTICAST_CHAINS": str(chain),
                            }
                            label = f"{peer} M={chain}" if len(wanted_chains) > 1 and peer == "multicast" else peer
                            rows.append(measure(lab, "openmpi", name, size, repeats, label, env))
                    for mpi in ("openmpi", "mpich") if hosts else ():
                        rows.append(measure(lab, mpi, name, size, repeats, mpi, None))
    meta = comparison.base_meta([]) | {"rate_bits_per_s": bits, "repeats": repeats, "overdrive": overdrive}
    show(rows)
    if json_file:
        results.write(json_file, {"meta": meta, "rows": rows})
    if not all(row["verified"] for row in rows):
        raise typer.Exit(1)


def measure(lab: Lab, mpi: str, name: str, size: int, repeats: int, label: str, env: dict | None) -> dict:
    """Two launches: what both have on the links is the launcher's, and the MPI's own."""
    few, _ = launch(lab, mpi, name, size, 1, env)
    many, row = launch(lab, mpi, name, size, repeats, env)
    operations = 2 * (repeats - 1)  # each repeat measures it pure, and overlapped
    part = size if name == "ibcast" else size / lab.plan.node_count
    received = size if name == "ibcast" else size - part
    return {
        "collective": name, "nodes": lab.plan.node_count, "bytes": size, "peer": label,
        "time_ns": row["t_pure_ns"], "time_max_ns": row["t_pure_max_ns"], "verified": row["verified"] is not False,
        "service_cpu_ns": row["service_cpu_ns"] if env else 0,
        "up": max(after.since(before).up for before, after in zip(few, many)) / operations / part,
        "down": max(after.since(before).down for before, after in zip(few, many)) / operations / received,
        "all": sum(after.since(before).up for before, after in zip(few, many)) / operations / size,
    }  # fmt: skip


def launch(lab: Lab, mpi: str, name: str, size: int, repeats: int, env: dict | None) -> tuple[list[LinkBytes], dict]:
    with tempfile.NamedTemporaryFile(dir="/var/tmp", suffix=".json") as file:
        argv = [str(paths().bench / mpi / "collectives"), "--collective", name, "--sizes", str(size), "--verify"]
        argv += ["--warmup", "1", "--work-ns", "1000", "--repeats", str(repeats), "--json", file.name]
        before = link_bytes(lab.plan)
        done = lab.mpirun(mpi, 1, argv, offload=env is not None, env=env, timeout=120)
        if done.returncode != 0:
            raise UserError(f"{name} of {size} bytes ended with status {done.returncode}: {done.stderr[-300:]}")
        counted = [after.since(then) for then, after in zip(before, link_bytes(lab.plan))]
        return counted, json.loads(Path(file.name).read_text())["rows"][0]


def show(rows: list[dict]) -> None:
    columns = ("collective", "nodes", "size", "by", "time ms", "service ms", "up", "down", "all links up")
    title = "Multicast, and what there is otherwise"
    table = Table(*columns, title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.no_wrap = True
    for row in rows:
        table.add_row(
            row["collective"], str(row["nodes"]), size_text(row["bytes"]), row["peer"],
            measuring.ms_text(row["time_ns"]), measuring.ms_text(row["service_cpu_ns"]),
            *(f"{row[name]:.2f}" for name in ("up", "down", "all")),
        )  # fmt: skip
    console.out.print(table)
