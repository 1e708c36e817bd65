# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench multicast`: broadcast and allgather by multicast beside ring, chain and the MPIs: time, processor
time of the services, and the bytes on each link of the lab."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.oldest import StrEnum
from offpath.base.paths import paths
from offpath.base.sizes import ms_text, parse_sizes, size_text
from offpath.base.tables import Table
from offpath.bench import goals, measuring, results
from offpath.lab import Lab, inventory
from offpath.lab.counters import LinkBytes, link_bytes
from offpath.lab.plan import Loss, parse_rate
from offpath.launch import checks
from offpath.places import asked, comparison

PEERS = {"ibcast": ("multicast", "chain"), "iallgather": ("multicast", "ring", "direct")}
HEADROOM = 0.99  # of the link's rate is what multicast may take: switches drop what comes in faster than it leaves
AROUND_BYTES = 28 + 40  # a chunk: IP, UDP, Offpath's header and tag
FIELDS = ("velocity", "halo", "tiles", "random")  # that the program makes
STOP_S = 1.0
OPERATIONS_BEFORE_STOP = 5  # two of them warm up
LIMIT_S = 120
FIXED = ("collective", "nodes", "bytes", "peer", "loss_percent", "verified")  # of a row; the rest is measured


class Where(StrEnum):
    down = "down"
    up = "up"


class Event(StrEnum):
    """What happens meanwhile."""

    nothing = "nothing"
    stop = "stop"
    alltoall = "alltoall"


app = commands.alone()


@app.command()
def multicast_command(
    nodes: Annotated[str, typer.Option(help="Nodes of the labs, separated by commas.")] = "2,4,8",
    rate: asked.Rate = "250mbit",
    sizes: Annotated[str, typer.Option(help="All bytes that a rank receives.")] = "1M,4M",
    collectives: Annotated[str, typer.Option(help="Which, separated by commas.")] = "ibcast,iallgather",
    by: Annotated[str, typer.Option(help="Only by these: multicast, chain, ring, direct.")] = "",
    chains: Annotated[
        str, typer.Option(help="Nodes that multicast at the same time, separated by commas. 0: Offpath's choice.")
    ] = "0",
    losses: Annotated[
        str, typer.Option("--loss", help="Percent of the multicast packets that links lose, separated by commas.")
    ] = "",
    where: Annotated[
        Where, typer.Option("--loss-at", help="down: each receiver loses others; up: all of them the same ones.")
    ] = Where.down,
    event: Annotated[
        Event, typer.Option("--while", help="stop: a service is stopped for a second; alltoall: another job runs one.")
    ] = Event.nothing,
    field: Annotated[str, typer.Option(help="Send numbers of it: velocity, halo, tiles or random.")] = "",
    compress: Annotated[str, typer.Option(help="How services compress: auto, off, lz4, ...")] = "off",
    hosts: Annotated[bool, typer.Option("--hosts/--no-hosts", help="Measure both MPIs alone, too.")] = True,
    runs: asked.Runs = 3,
    repeats: Annotated[int, typer.Option(min=2, help="Repeats in each launch.")] = 10,
    json_file: results.JsonFile = None,
) -> None:
    """Measure broadcast and allgather by multicast in a lab, beside what there is otherwise.

    time is t_pure, the median of the slowest rank; service is the processor time of all services for one operation. up
    and down are the most bytes that an operation puts on a link to the switch, and from it, over the bytes of one
    copy: what a node has to send itself, and what it has to receive. They are counted by the switch. chunks are those
    that a service sends or takes for each second of its processor time.

    Examples:

        offpath bench multicast --nodes 4 --sizes 1M --repeats 5 --json multicast.json

        offpath bench multicast --nodes 4 --sizes 1M --by multicast --loss 0,0.1,1 --no-hosts

        offpath bench multicast --nodes 4 --sizes 4M --field tiles --compress auto --no-hosts
    """
    byte_sizes = parse_sizes(sizes)
    names = measuring.parse_names(collectives, PEERS, "a collective")
    counts, wanted_chains = numbers(nodes, 2, "nodes"), numbers(chains, 0, "nodes at the same time")
    known = {peer: () for of in PEERS.values() for peer in of}
    peers = set(measuring.parse_names(by, known, "an algorithm") if by else known)
    bits = parse_rate(rate)
    wish = checks.compression(compress)
    content = ["--field", measuring.parse_names(field, dict.fromkeys(FIELDS, ()), "a field")[0]] if field else []
    lossy = [lose(word, where) for word in losses.split(",")] if losses else [None]
    files.writable_file(json_file, "--json")
    if not comparison.lab_is_possible():
        raise UserError("Multicast is measured in a lab (which needs root). Run it as root.")
    rows = []
    for count in counts:
        for loss in lossy:
            with Lab(nodes=count, rate=rate, loss=loss) as lab:
                for name, size in ((name, size) for name in names for size in byte_sizes):
                    ways: list[tuple[str, str, dict | None]] = []
                    for peer in PEERS[name]:
                        for chain in wanted_chains if peer == "multicast" else wanted_chains[:1]:
                            env = {
                                "OFFPATH_POLICY": f"{name}:0-inf:dpu={peer}",
                                "OFFPATH_MULTICAST_RATE": str(int(bits * HEADROOM)),
                                "OFFPATH_MULTICAST_CHAINS": str(chain),
                                "OFFPATH_COMPRESS": wish or "off",
                            }
                            label = f"{peer} M={chain}" if len(wanted_chains) > 1 and peer == "multicast" else peer
                            if peer in peers:
                                ways.append((label, "openmpi", env))
                    ways += [(mpi, mpi, None) for mpi in (("openmpi", "mpich") if hosts else ())]
                    launches = [
                        [measure(lab, mpi, name, size, repeats, label, env, event, content) for label, mpi, env in ways]
                        for _ in range(runs)
                    ]
                    rows += [over_launches(of_way) for of_way in zip(*launches)]
    meta = comparison.base_meta([]) | {"rate_bits_per_s": bits, "repeats": repeats, "runs": runs}
    meta |= {"field": field, "compress": compress, "loss_at": where.value, "loss_of": "multicast", "while": event.value}
    plain = not losses and event == Event.nothing
    results.deliver({"meta": meta, "rows": rows, "checks": goals_of(rows) if plain else []}, show, json_file)


def over_launches(launches: Sequence[dict]) -> dict:
    """Medians, but for the least and the most of all."""
    row = dict(launches[0])
    for name in (name for name in row if name not in FIXED):
        row[name] = statistics.median(each[name] for each in launches)
    row["time_min_ns"] = min(each["time_min_ns"] for each in launches)
    for name in ("time_max_ns", "longest_ns"):
        row[name] = max(each[name] for each in launches)
    return row | {"runs": len(launches), "verified": all(each["verified"] for each in launches)}


def goals_of(rows: Sequence[dict]) -> list[dict]:
    """An allgather by multicast against the ring: what frees links must cost neither time nor processors."""
    rings = {(row["nodes"], row["bytes"]): row for row in rows if row["peer"] == "ring" and row["verified"]}
    pairs = [
        (row, rings[row["nodes"], row["bytes"]])
        for row in rows
        if row["collective"] == "iallgather" and row["peer"].startswith("multicast") and row["verified"]
        if (row["nodes"], row["bytes"]) in rings
    ]
    ratios = {
        goal: [ours[name] / ring[name] for ours, ring in pairs if ring[name] > 0]
        for goal, name in (("multicast_time_ratio", "time_ns"), ("multicast_cpu_ratio", "service_cpu_ns"))
    }
    return [each for goal, values in ratios.items() for each in goals.check(goal, values)]


def numbers(text: str, least: int, what: str) -> list[int]:
    found = [int(word) for word in text.split(",") if word.isdigit()]
    if not found or len(found) != len(text.split(",")) or min(found) < least:
        raise UserError(f"'{text}' {what} cannot be measured. Give whole numbers of at least {least}.")
    return found


def lose(text: str, where: Where) -> Loss:
    """Only of packets that are multicast. With 0, too, packets are as in a lab that loses some."""
    try:
        percent = float(text)
    except ValueError:
        raise UserError(f"'{text}' is not a loss. Give percents such as 0,0.1,1.") from None
    return Loss.make(**{where.value: percent}, only_multicast=True) or Loss()


def measure(
    lab: Lab, mpi: str, name: str, size: int, repeats: int, label: str, env: dict | None, event: Event = Event.nothing,
    content: Sequence[str] = (),
) -> dict:  # fmt: skip
    """Two launches: what both have on the links is the launcher's, and the MPI's own."""
    few, _ = launch(lab, mpi, name, size, 1, env, content)
    with meanwhile(lab, event, size) as beside:
        many, row = launch(lab, mpi, name, size, repeats, env, content)
    operations = 2 * (repeats - 1)  # each repeat measures it pure, and overlapped
    count = lab.plan.node_count
    part = size if name == "ibcast" else size / count
    received = size if name == "ibcast" else size - part
    chunks = count * size / (lab.plan.mtu_bytes - AROUND_BYTES)
    loss = lab.plan.loss or Loss()
    return {
        "collective": name, "nodes": count, "bytes": size, "peer": label,
        "loss_percent": loss.up or loss.down,
        "time_ns": row["t_pure_ns"], "time_min_ns": row["t_pure_min_ns"], "time_max_ns": row["t_pure_max_ns"],
        "longest_ns": max(row["t_pure_max_ns"], row["t_total_max_ns"]),
        "verified": row["verified"],
        "service_cpu_ns": row["service_cpu_ns"] if env else 0,
        "chunks_per_cpu_s": chunks / row["service_cpu_ns"] * 1e9 if env and row["service_cpu_ns"] > 0 else 0,
        "up": max(after.since(before).up for before, after in zip(few, many)) / operations / part,
        "down": max(after.since(before).down for before, after in zip(few, many)) / operations / received,
        "all": sum(after.since(before).up for before, after in zip(few, many)) / operations / size,
        "alltoall_time_ns": beside.get("t_pure_ns", 0),
    }  # fmt: skip


def launch(
    lab: Lab, mpi: str, name: str, size: int, repeats: int, env: dict | None, content: Sequence[str] = ()
) -> tuple[list[LinkBytes], dict]:
    with tempfile.NamedTemporaryFile(dir="/var/tmp", suffix=".json") as file:
        argv = [str(paths().bench / mpi / "collectives"), "--collective", name, "--sizes", str(size), "--verify"]
        argv += ["--warmup", "1", "--work-ns", "1000", "--repeats", str(repeats), "--json", file.name, *content]
        before = link_bytes(lab.plan)
        done = lab.mpirun(mpi, 1, argv, offload=env is not None, env=env, timeout=LIMIT_S)
        if done.returncode != 0:
            raise UserError(f"{name} of {size} bytes ended with status {done.returncode}: {done.stderr[-300:]}")
        counted = [after.since(then) for then, after in zip(before, link_bytes(lab.plan))]
        return counted, json.loads(Path(file.name).read_text())["rows"][0]


@contextlib.contextmanager
def meanwhile(lab: Lab, event: Event, size: int) -> Iterator[dict]:
    """What it measures itself is there at the end."""
    row: dict = {}
    over = threading.Event()
    work = {Event.stop: stop_service, Event.alltoall: run_alltoall}.get(event)
    thread = threading.Thread(target=work, args=(lab, size, over, row)) if work else None
    if thread:
        thread.start()
    try:
        yield row
    finally:
        over.set()
        if thread:
            thread.join()


def stop_service(lab: Lab, size: int, over: threading.Event, row: dict) -> None:
    """That of the last node, once operations are measured, for a second."""
    begin = link_bytes(lab.plan)[-1].down + OPERATIONS_BEFORE_STOP * size
    while not over.is_set() and link_bytes(lab.plan)[-1].down < begin:
        time.sleep(0.005)
    names = {
        pid: Path(f"/proc/{pid}/comm").read_text() for pid in inventory.processes(lab.name, [lab.plan.dpus[-1].place])
    }
    services = [pid for pid, name in names.items() if name.startswith("offpathd")]
    for signum in (signal.SIGSTOP, signal.SIGCONT):
        for pid in services:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)
        over.wait(STOP_S if signum == signal.SIGSTOP else 0)


def run_alltoall(lab: Lab, size: int, over: threading.Event, row: dict) -> None:
    """Again and again, as another job: its ranks and services are beside those that are measured."""
    env = {"OFFPATH_POLICY": "ialltoall:0-inf:dpu"}
    times = []
    while not over.is_set():
        times.append(launch(lab, "openmpi", "ialltoall", size // lab.plan.node_count, 20, env)[1]["t_pure_ns"])
    row["t_pure_ns"] = statistics.median(times)


def show(result: dict) -> None:
    rows = result["rows"]
    columns = [
        "collective",
        "nodes",
        "size",
        "by",
        "time ms",
        "to",
        "service ms",
        "chunks/s",
        "up",
        "down",
        "all links up",
    ]
    lossy, beside = (any(row[name] for row in rows) for name in ("loss_percent", "alltoall_time_ns"))
    columns += ["lost %"] * lossy + ["alltoall ms"] * beside
    title = "Multicast, and what there is otherwise"
    table = Table(*columns, keys=4, title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.no_wrap = True
    for row in rows:
        table.add_row(
            row["collective"], str(row["nodes"]), size_text(row["bytes"]), row["peer"],
            *(ms_text(row[name]) for name in ("time_ns", "time_max_ns", "service_cpu_ns")),
            f"{row['chunks_per_cpu_s'] / 1e3:.0f}k",
            *(f"{row[name]:.2f}" for name in ("up", "down", "all")),
            *[f"{row['loss_percent']:g}"] * lossy,
            *[ms_text(row["alltoall_time_ns"])] * beside,
        )  # fmt: skip
    console.out.print(table)
