# SPDX-License-Identifier: BSD-3-Clause
"""Launches of a program of bench/ whose computation hides communication, in turns over the peers of a comparison.

All peers do the same work: its amount is set in the first launch of the MPI alone.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from offpath.base import console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import traded
from offpath.bench import wire_cost
from offpath.bench.kit import FAILED, Case, Site, Table, peers, turns
from offpath.bench.kit.rows import over_launches
from offpath.lab.plan import parse_rate
from offpath.launch import stats
from offpath.places import comparison
from offpath.places.comparison import CORES, DPU, HOST, Place

# What the program collectives measures; barriers have no size.
COLLECTIVES = (
    "ialltoall", "ialltoallv", "iallgather", "iallgatherv", "igather", "iscatter", "ibcast", "ireduce", "iallreduce",
    "ireduce_scatter", "ireduce_scatter_block", "iscan", "iexscan",
)  # fmt: skip
TIMES = ("t_pure", "t_compute", "t_total")
CPU_TIMES = ("host_cpu_ns", "agent_cpu_ns", "service_cpu_ns")  # of everybody, for an operation with its computation
EVERYTHING_HERE: Mapping[str, Place] = {}
# For the estimate only: starting an MPI job and setting the work; repeats before those that count.
START_S, WARMUP, LOOPBACK_BITS_PER_S = 2.5, 3, 8e9


@dataclass(frozen=True)
class Peer:
    """One way to run the program."""

    name: str
    offload: bool = False
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    only_mpi: str | None = None
    must_offload: bool = False  # a launch that offloaded nothing is a failed one
    placement: str = CORES  # where its service runs

    def placed(self, placement: str) -> Peer:
        return replace(self, name=f"{self.name}-{placement}", placement=placement)

    def protected(self, protection: str) -> Peer:
        """The same with what goes over the network encrypted, or without a tag of user data."""
        security = {"OFFPATH_FABRIC_SECURITY": PROTECTIONS[protection]}
        return replace(self, name=protection, env={**self.env, **security})


ALONE = Peer(HOST)
# Of Offpath; by default it authenticates.
PROTECTIONS = {"encrypt": "encrypt", "unprotected": "user-data-unprotected"}


def has_links(meta: dict) -> bool:
    """Without a link there is no time to hide, and nothing is aimed at."""
    return bool(meta.get("rate"))


def offpath_peer(policy: str | None) -> Peer:
    return Peer("offpath", offload=True, env={"OFFPATH_POLICY": policy} if policy else {})


@dataclass(frozen=True)
class Conditions:
    """Where, and how often."""

    nodes: int
    ppn: int
    rate: str
    loopback: bool
    runs: int  # launches of each peer
    repeats: int  # in each launch
    where: Place | None = None  # in place of a lab

    def open(self) -> contextlib.AbstractContextManager[Place]:
        if self.where is not None:
            return contextlib.nullcontext(self.where)
        return comparison.place(self.nodes, self.ppn, self.rate, self.loopback)

    @property
    def bits_per_s(self) -> int | None:
        """Of the links, where there are any."""
        if self.where is not None:
            return self.where.meta.get("rate_bits_per_s")
        return None if self.loopback else parse_rate(self.rate)


@dataclass(frozen=True)
class Program:
    """A program of bench/: how it is told what to measure, and what of its rows is kept."""

    name: str
    noun: str  # the program's option and the rows' field that name what is measured
    labels: tuple[str, ...] = ("bytes", "ranks")  # alike in every launch
    medians: tuple[str, ...] = ("host_cpu_ns", "service_cpu_ns")
    carried: tuple[str, ...] = ()  # of the first output: given to all launches after it
    rows_per_size: int = 1
    launcher: str | None = None  # other than that of the series' MPI


COLLECTIVE_PROGRAM = Program(
    "collectives", "collective", medians=("host_cpu_ns", "compute_cpu_ns", "agent_cpu_ns", "service_cpu_ns")
)


@dataclass
class Series:
    """One collective or operation with one MPI: every size in every launch, the peers in turns, the MPI alone first."""

    mpi: str
    name: str
    sizes: tuple[int, ...]  # bytes, as the program understands them
    peers: tuple[Peer, ...]
    program: Program = COLLECTIVE_PROGRAM
    messages: int = 1  # of that size, in one operation
    carried: dict[str, object] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)  # one for each peer

    def __post_init__(self) -> None:
        self.peers = tuple(peer for peer in self.peers if peer.only_mpi in (None, self.mpi))
        labels = {"mpi": self.mpi, self.program.noun: self.name}
        self.cases = [Case({**labels, "peer": peer.name}, lambda _: None) for peer in self.peers]

    @property
    def launches(self) -> dict[str, list[list[dict]]]:
        """By peer: each launch's rows, by size."""
        return {peer.name: case.launches for peer, case in zip(self.peers, self.cases)}

    def round(self, repeats: int, elsewhere: Mapping[str, Place] = EVERYTHING_HERE) -> list[Case]:
        """Its cases; those of a placement in `elsewhere` are launched there."""
        for peer, case in zip(self.peers, self.cases):
            case.launch = functools.partial(_launch, self, peer, repeats, elsewhere)
        return self.cases


def estimate_s(all_series: Sequence[Series], runs: int, repeats: int, rate_bits_per_s: float | None) -> float:
    """About how long it takes, if nothing but the link limits."""
    rate = rate_bits_per_s or LOOPBACK_BITS_PER_S
    seconds = 0.0
    for series in all_series:
        # A repeat is t_pure, t_compute and t_total: each about the time on the wire, the last up to twice.
        wire_s = series.program.rows_per_size * series.messages * sum(8 * size / rate for size in series.sizes)
        seconds += runs * len(series.peers) * (START_S + (repeats + WARMUP) * 4 * wire_s)
    return seconds


def compare(
    kinds: Sequence[str],
    conditions: Conditions,
    all_series: Sequence[Series],
    about: dict,
    elsewhere: Mapping[str, Place] = EVERYTHING_HERE,
) -> dict:
    """{"meta", "rows"}: what --json writes. `about` goes into meta."""
    if conditions.where is None:
        comparison.check(conditions.loopback)
    sizes = [size for each in all_series for size in each.sizes]
    site = Site(
        [each.round(conditions.repeats, elsewhere) for each in all_series], conditions.open,
        at_end=lambda where: {"reachable_efficiency": wire_cost.reachable(where, sizes)},
    )  # fmt: skip
    seconds = estimate_s(all_series, conditions.runs, conditions.repeats, conditions.bits_per_s)
    meta = comparison.base_meta(kinds) | turns.measure([site], conditions.runs, seconds) | about
    return {"meta": meta | {"repeats": conditions.repeats}, "rows": rows(all_series, conditions.nodes)}


def _launch(series: Series, peer: Peer, repeats: int, elsewhere: Mapping[str, Place], here: Place) -> list[dict]:
    """Rows of one launch of one peer. Raises UserError."""
    alone = series.cases[0].launches
    if not alone and peer is not series.peers[0]:
        raise UserError("not launched: no launch of the MPI alone has said how much work to do.", FAILED)
    argv = [
        str(paths().bench_program(series.program.name, series.mpi)), f"--{series.program.noun}", series.name, "--sizes",
        ",".join(map(str, series.sizes)), "--repeats", str(repeats), "--verify", *peer.arguments,
    ]  # fmt: skip
    if alone:
        argv += ["--work-iterations", ",".join(str(row["work_iterations"]) for row in alone[0])]
        for name, value in series.carried.items():
            argv += [f"--{name.replace('_', '-')}", str(value)]
    where = elsewhere.get(peer.placement, here)
    result = comparison.launch_for_json(where, series.program.launcher or series.mpi, argv, peer.offload, peer.env)
    if result.output is None:
        raise UserError(result.problem or "", FAILED)
    unreached = peer.placement != CORES and any(rank.get("reason") for rank in result.stats)
    if unreached or (peer.must_offload and stats.offloaded_count(result.stats) == 0):
        raise UserError(f"{stats.unused(result.stats)}. Try OFFPATH_LOG=info to see more.", FAILED)
    if result.problem:
        console.note(f"{result.problem} Its results count: they were written before.")
    series.carried = series.carried or {name: result.output[name] for name in series.program.carried}
    return result.output["rows"]


def rows(all_series: Sequence[Series], nodes: int = 1) -> list[dict]:
    """One for each row of each series and peer that delivered, with what it takes more and saves beside the first."""
    result = []
    for series in all_series:
        for index in range(len(series.sizes) * series.program.rows_per_size):
            first = None
            for peer, case in zip(series.peers, series.cases):
                if case.launches:
                    row = dict(case.labels) | _row(series.program, peer, [each[index] for each in case.launches])
                    first = first or row
                    result.append(row | _against(first, row, nodes))
    return result


def _against(first: dict, row: dict, nodes: int) -> dict:
    faster_ns = first["t_total_ns"] - row["t_total_ns"]
    core_ns = [sum(each.get(name, 0) for name in CPU_TIMES) for each in (row, first)]
    return {
        "speedup": first["t_total_ns"] / row["t_total_ns"],
        "core_more_ns": core_ns[0] - core_ns[1], "node_saved_ns": faster_ns * nodes,
    }  # fmt: skip


def trade_table(what: str) -> Table:
    """`what`: cell that says which operation a row is about."""
    return Table("{mpi:mpi}: processor time and time of nodes, for each operation", [
        ("", what), ("", lambda row: peers.title(row["peer"])),
        ("beside the MPI alone", lambda row: traded(row["core_more_ns"], row["node_saved_ns"])),
    ], keys=2, where=lambda row: row["mode"] == DPU and "core_more_ns" in row)  # fmt: skip


def _row(program: Program, peer: Peer, samples: Sequence[dict]) -> dict:
    times = [f"{time}{part}_ns" for part in ("", "_min", "_max") for time in TIMES]
    wanted = (*program.labels, *times, *program.medians, "work_iterations", "verified")
    row = {"mode": DPU if peer.offload else HOST, "placement": peer.placement if peer.offload else None}
    row |= over_launches([{name: sample[name] for name in wanted} for sample in samples])
    row["efficiency"] = max(row["t_pure_ns"], row["t_compute_ns"]) / row["t_total_ns"]
    if "work_share" in samples[0]:
        row["work_share"] = min(sample["work_share"] for sample in samples)
    return row
