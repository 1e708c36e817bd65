# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench multicast`: broadcast and allgather by multicast beside ring, chain and the MPIs: time, processor
time of the services, and the bytes on each link of the lab."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.oldest import StrEnum
from offpath.base.paths import paths
from offpath.base.sizes import parse_numbers, parse_sizes
from offpath.bench.kit import Benchmark, Case, Site, Table, options, rows, turns
from offpath.lab import Lab, inventory
from offpath.lab.counters import LinkBytes, link_bytes
from offpath.lab.plan import Loss, parse_rate
from offpath.launch import checks
from offpath.places import asked, comparison
from offpath.places.comparison import LabPlace

PEERS = {"ibcast": ("multicast", "chain"), "iallgather": ("multicast", "ring", "direct")}
HEADROOM = 0.99  # of the link's rate is what multicast may take: switches drop what comes in faster than it leaves
AROUND_BYTES = 28 + 40  # a chunk: IP, UDP, Offpath's header and tag
FIELDS = ("velocity", "halo", "tiles", "random")  # that the program makes
STOP_S = 1.0
OPERATIONS_BEFORE_STOP = 5  # two of them warm up
LIMIT_S = 120
MPIS = ("openmpi", "mpich")


class Where(StrEnum):
    down = "down"
    up = "up"


class Event(StrEnum):
    """What happens meanwhile."""

    nothing = "nothing"
    stop = "stop"
    alltoall = "alltoall"


def _over_the_ring(field: str) -> Callable[[list[dict]], list[float]]:
    """Of an allgather by multicast: what frees links must cost neither time nor processors."""

    def ratios(found: list[dict]) -> list[float]:
        rings = {(row["nodes"], row["bytes"]): row[field] for row in found if row["peer"] == "ring"}
        ours = [row for row in found if row["collective"] == "iallgather" and row["peer"].startswith("multicast")]
        pairs = [(row[field], rings.get((row["nodes"], row["bytes"]), 0)) for row in ours]
        return [own / ring for own, ring in pairs if ring > 0]

    return ratios


BENCHMARK = Benchmark(
    [Table("Multicast, and what there is otherwise", [
        ("collective", "{collective}"), ("nodes", "{nodes}"), ("size", "{bytes:size}"), ("by", "{peer}"),
        ("time ms", "{time_ns:ms}"), ("to", "{time_max_ns:ms}"), ("service ms", "{service_cpu_ns:ms}"),
        ("chunks/s", lambda row: f"{row['chunks_per_cpu_s'] / 1e3:.0f}k"), ("up", "{up:.2f}"), ("down", "{down:.2f}"),
        ("all links up", "{all:.2f}"),
        ("lost %", lambda row: f"{row['loss_percent']:g}" if row["loss_percent"] else ""),
        ("alltoall ms", lambda row: f"{row['alltoall_time_ns'] / 1e6:.2f}" if row["alltoall_time_ns"] else ""),
    ], keys=4)],
    {"multicast_time_ratio": _over_the_ring("time_ns"), "multicast_cpu_ratio": _over_the_ring("service_cpu_ns")},
    aimed_at=lambda meta: not meta.get("lossy") and meta.get("while") == Event.nothing,
)  # fmt: skip

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
    json_file: options.JsonFile = None,
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
    byte_sizes, bits = parse_sizes(sizes), parse_rate(rate)
    names = options.names(collectives, PEERS, "a collective")
    counts = parse_numbers(nodes, "--nodes", 2)
    wanted_chains = parse_numbers(chains, "--chains", 0)
    known = dict.fromkeys(itertools.chain(*PEERS.values()))
    peers = options.names(by, known, "an algorithm") if by else list(known)
    compressing = checks.compression(compress) or "off"
    content = ["--field", *options.names(field, FIELDS, "a field")[:1]] if field else []
    lossy = [lose(word, where) for word in losses.split(",")] if losses else [None]
    options.check_files(json_file)
    options.require_lab("Multicast is")
    ways = [
        Way(name, size, f"{peer} M={chain}" if len(wanted_chains) > 1 and peer == "multicast" else peer, MPIS[0], {
            "OFFPATH_POLICY": f"{name}:0-inf:dpu={peer}", "OFFPATH_MULTICAST_RATE": str(int(bits * HEADROOM)),
            "OFFPATH_MULTICAST_CHAINS": str(chain), "OFFPATH_COMPRESS": compressing,
        })
        for name, size in itertools.product(names, byte_sizes)
        for peer in PEERS[name] if peer in peers
        for chain in (wanted_chains if peer == "multicast" else wanted_chains[:1])
    ]  # fmt: skip
    if hosts:
        ways += [Way(name, size, mpi, mpi) for name, size in itertools.product(names, byte_sizes) for mpi in MPIS]
    sites = []
    for count, loss in itertools.product(counts, lossy):
        rounds = [
            [Case(each.labels(count, loss), functools.partial(measure, each, repeats, event, content))
             for each in ways if (each.collective, each.size) == same]
            for same in itertools.product(names, byte_sizes)
        ]  # fmt: skip
        sites.append(Site(rounds, functools.partial(Lab, nodes=count, rate=rate, loss=loss)))
    meta = comparison.base_meta([]) | turns.measure(sites, runs)
    meta |= {"rate_bits_per_s": bits, "repeats": repeats, "field": field, "compress": compress, "lossy": bool(losses)}
    meta |= {"loss_at": where.value, "loss_of": "multicast", "while": event.value}
    BENCHMARK.deliver({"meta": meta, "rows": rows.of_cases(case for site in sites for case in site.cases)}, json_file)


@dataclass(frozen=True)
class Way:
    """To do an operation. `env`: of a service; natively none."""

    collective: str
    size: int
    peer: str
    mpi: str
    env: dict[str, str] | None = None

    def labels(self, nodes: int, loss: Loss | None) -> dict:
        lost = loss.up or loss.down if loss else 0
        return {"collective": self.collective, "nodes": nodes, "bytes": self.size, "peer": self.peer,
                "loss_percent": lost}  # fmt: skip


def lose(text: str, where: Where) -> Loss:
    """Only of packets that are multicast. With 0, too, packets are as in a lab that loses some."""
    try:
        percent = float(text)
    except ValueError:
        raise UserError(f"'{text}' is not a loss. Give percents such as 0,0.1,1.") from None
    return Loss.make(**{where.value: percent}, only_multicast=True) or Loss()


def measure(way: Way, repeats: int, event: Event, content: Sequence[str], lab: Lab) -> dict:
    """Two launches: what both have on the links is the launcher's, and the MPI's own."""
    size, count, env = way.size, lab.plan.node_count, way.env
    few, _ = launch(lab, way, 1, content)
    with meanwhile(lab, event, size) as beside:
        many, row = launch(lab, way, repeats, content)
    operations = 2 * (repeats - 1)  # each repeat measures it pure, and overlapped
    part = size if way.collective == "ibcast" else size / count
    received = size if way.collective == "ibcast" else size - part
    chunks = count * size / (lab.plan.mtu_bytes - AROUND_BYTES)
    used = [after.since(before) for before, after in zip(few, many)]
    return {
        "time_ns": row["t_pure_ns"], "time_min_ns": row["t_pure_min_ns"], "time_max_ns": row["t_pure_max_ns"],
        "longest_ns": max(row["t_pure_max_ns"], row["t_total_max_ns"]),
        "verified": row["verified"],
        "service_cpu_ns": row["service_cpu_ns"] if env else 0,
        "chunks_per_cpu_s": chunks / row["service_cpu_ns"] * 1e9 if env and row["service_cpu_ns"] > 0 else 0,
        "up": max(link.up for link in used) / operations / part,
        "down": max(link.down for link in used) / operations / received,
        "all": sum(link.up for link in used) / operations / size,
        "alltoall_time_ns": beside.get("t_pure_ns", 0),
    }  # fmt: skip


def launch(lab: Lab, way: Way, repeats: int, content: Sequence[str] = ()) -> tuple[list[LinkBytes], dict]:
    argv = [str(paths().bench_program("collectives", way.mpi)), "--collective", way.collective, "--verify"]
    argv += ["--sizes", str(way.size), "--warmup", "1", "--work-ns", "1000", "--repeats", str(repeats), *content]
    before = link_bytes(lab.plan)
    where = LabPlace(lab, 1, LIMIT_S)
    output, _ = comparison.run_for_json(where, way.mpi, argv, way.env is not None, way.env or {})
    return [after.since(then) for then, after in zip(before, link_bytes(lab.plan))], output["rows"][0]


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
    size //= lab.plan.node_count
    way = Way("ialltoall", size, "", MPIS[0], {"OFFPATH_POLICY": "ialltoall:0-inf:dpu"})
    times = []
    while not over.is_set():
        times.append(launch(lab, way, 20)[1]["t_pure_ns"])
    row["t_pure_ns"] = statistics.median(times)
