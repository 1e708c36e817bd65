# SPDX-License-Identifier: BSD-3-Clause
"""Launches of a program of bench/, in turns over the peers of a comparison, and what they come to.

All peers do the same work: its amount is set in the first launch of the MPI alone. A launch that fails is counted and
left out; Ctrl-C ends the measurement, and what was measured until then is kept.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from offpath.base import console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench import wire_cost
from offpath.launch import mpis, stats
from offpath.places import comparison
from offpath.places.comparison import CORES, DPU, HOST, Place

# What the program collectives measures; barriers have no size.
COLLECTIVES = (
    "ialltoall", "ialltoallv", "iallgather", "iallgatherv", "igather", "iscatter", "ibcast", "ireduce", "iallreduce",
    "ireduce_scatter", "ireduce_scatter_block", "iscan", "iexscan",
)  # fmt: skip
TIMES = ("t_pure", "t_compute", "t_total")
INTERRUPTED = 130
EVERYTHING_HERE: Mapping[str, Place] = {}
# For the estimate only: starting an MPI job and setting the work; repeats before those that count.
START_S, WARMUP, LOOPBACK_BITS_PER_S = 2.5, 3, 8e9


@dataclass(frozen=True)
class Peer:
    """One way to run the program."""

    name: str
    title: str
    offload: bool = False
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    only_mpi: str | None = None
    must_offload: bool = False  # a launch that offloaded nothing is a failed one
    placement: str = CORES  # where its service runs

    def placed(self, placement: str, title: str) -> Peer:
        return replace(self, name=f"{self.name}-{placement}", title=title, placement=placement)


ALONE = Peer(HOST, "host")


def offpath_peer(policy: str | None) -> Peer:
    return Peer("offpath", "Offpath", offload=True, env={"OFFPATH_POLICY": policy} if policy else {})


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
    launches: dict[str, list[list[dict]]] = field(default_factory=dict)  # by peer: each launch's rows, by size
    failures: list[dict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.peers = tuple(peer for peer in self.peers if peer.only_mpi in (None, self.mpi))
        self.launches = {peer.name: [] for peer in self.peers}


def parse_names(text: str, known: Sequence[str], what: str) -> list[str]:
    """The names in "a,b", each once. Raises UserError for one that is not in `known`."""
    names = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for name in names:
        if name not in known:
            raise UserError(f"'{name}' is not {what} measured here. Give some of {', '.join(known)}.")
    return names


def estimate_s(all_series: Sequence[Series], runs: int, repeats: int, rate_bits_per_s: float | None) -> float:
    """About how long it takes, if nothing but the link limits."""
    rate = rate_bits_per_s or LOOPBACK_BITS_PER_S
    seconds = 0.0
    for series in all_series:
        # A repeat is t_pure, t_compute and t_total: each about the time on the wire, the last up to twice.
        wire_s = series.program.rows_per_size * series.messages * sum(8 * size / rate for size in series.sizes)
        seconds += runs * len(series.peers) * (START_S + (repeats + WARMUP) * 4 * wire_s)
    return seconds


def duration_text(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def compare(
    kinds: Sequence[str],
    conditions: Conditions,
    all_series: Sequence[Series],
    about: dict,
    elsewhere: Mapping[str, Place] = EVERYTHING_HERE,
) -> dict:
    """{"meta", "rows"}: what --json writes. `about` goes into meta; `elsewhere`: see measure."""
    meta = comparison.base_meta(kinds)
    with conditions.open() as where:
        meta |= where.meta | about | {"runs": conditions.runs, "repeats": conditions.repeats}
        complete = measure(where, all_series, conditions.runs, conditions.repeats, elsewhere)
        if complete:
            sizes = [size for each in all_series for size in each.sizes]
            meta["reachable_efficiency"] = wire_cost.reachable(where, sizes)
    failures = [failure for series in all_series for failure in series.failures]
    return {"meta": meta | {"complete": complete, "failures": failures}, "rows": rows(all_series)}


def exit_status(result: dict) -> int:
    """130 after Ctrl-C, 1 when a launch failed or a result was wrong (which is a check), else 0."""
    meta = result["meta"]
    if not meta.get("complete", True):
        return INTERRUPTED
    return 1 if meta.get("failures") or wrong_rows(result) else 0


def all_rows(result: dict) -> list[dict]:
    """Of all tables of a result. Each says whether what came out was right: "verified"."""
    tables = (value for name, value in result.items() if name not in ("meta", "checks", "machine", "summary"))
    return [row for table in tables for row in table]


def wrong_rows(result: dict) -> list[dict]:
    """Also those that do not say so: what nobody has checked is not right."""
    return [row for row in all_rows(result) if not row.get("verified")]


@contextlib.contextmanager
def announced_progress(all_series: Sequence[Series], runs: int, repeats: int, where: Place) -> Iterator[Progress]:
    count = runs * sum(len(series.peers) for series in all_series)
    with announced(count, estimate_s(all_series, runs, repeats, where.meta["rate_bits_per_s"])) as progress:
        yield progress


@contextlib.contextmanager
def announced(launches: int, seconds: float) -> Iterator[Progress]:
    """Says before how long it takes, and on a terminal how far it is."""
    estimate = duration_text(seconds)
    console.note(f"{launches} launches, about {estimate}. Ctrl-C ends it and keeps what was measured until then.")
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), console=console.err) as progress:
        progress.add_task("", total=launches)
        yield progress


def measure(
    where: Place,
    all_series: Sequence[Series],
    runs: int,
    repeats: int,
    elsewhere: Mapping[str, Place] = EVERYTHING_HERE,
) -> bool:
    """Fills the series with launches, those of a placement in `elsewhere` there. False when Ctrl-C ended it before all
    were made."""
    with announced_progress(all_series, runs, repeats, where) as progress:
        task = progress.task_ids[0]
        try:
            for series in all_series:
                for run in range(runs):
                    for peer in series.peers:
                        title = f"{mpis.TITLES[series.mpi]}, {series.name}, {peer.title}, run {run + 1} of {runs}"
                        progress.update(task, description=title)
                        launch(elsewhere.get(peer.placement, where), series, peer, repeats)
                        progress.advance(task)
        except (KeyboardInterrupt, SystemExit):  # Ctrl-C, or the SIGTERM of a time limit
            done = progress.tasks[0].completed
            progress.update(task, description="interrupted")
            console.note(f"interrupted after {done:.0f} of {progress.tasks[0].total:.0f} launches: incomplete.")
            return False
        progress.update(task, description="done")
    return True


def launch(where: Place, series: Series, peer: Peer, repeats: int) -> None:
    """One launch of one peer: its rows are added to the series, or a failure is."""
    alone = series.launches[series.peers[0].name]
    if not alone and peer is not series.peers[0]:
        _fail(series, peer, "not launched: no launch of the MPI alone has said how much work to do.")
        return
    argv = [
        str(paths().bench_program(series.program.name, series.mpi)), f"--{series.program.noun}", series.name, "--sizes",
        ",".join(map(str, series.sizes)), "--repeats", str(repeats), "--verify", *peer.arguments,
    ]  # fmt: skip
    if alone:
        argv += ["--work-iterations", ",".join(str(row["work_iterations"]) for row in alone[0])]
        for name, value in series.carried.items():
            argv += [f"--{name.replace('_', '-')}", str(value)]
    launcher = series.program.launcher or series.mpi
    result = comparison.launch_for_json(where, launcher, argv, peer.offload, peer.env)
    if result.output is None:
        _fail(series, peer, result.problem)
        return
    reasons = "; ".join(sorted({str(rank["reason"]) for rank in result.stats if rank.get("reason")}))
    unreached = peer.placement != CORES and reasons
    if unreached or (peer.must_offload and stats.offloaded_count(result.stats) == 0):
        problem = f"nothing was offloaded ({reasons or 'no rank said why'}). Try OFFPATH_LOG=info to see more."
        _fail(series, peer, problem)
        return
    if result.problem:
        console.note(f"{result.problem} Its results count: they were written before.")
    series.launches[peer.name].append(result.output["rows"])
    series.carried = series.carried or {name: result.output[name] for name in series.program.carried}


def _fail(series: Series, peer: Peer, problem: str) -> None:
    if not any(failure["peer"] == peer.name for failure in series.failures):
        console.note(f"{series.name}, {peer.title}: {problem}")
    series.failures.append({"mpi": series.mpi, series.program.noun: series.name, "peer": peer.name, "problem": problem})


def rows(all_series: Sequence[Series]) -> list[dict]:
    """One for each row of each series and peer that delivered."""
    result = []
    for series in all_series:
        for index in range(len(series.sizes) * series.program.rows_per_size):
            host_total = None
            for peer in series.peers:
                samples = [each[index] for each in series.launches[peer.name]]
                if samples:
                    row = _row(series, peer, samples)
                    host_total = host_total or row["t_total_ns"]
                    result.append(row | {"speedup": host_total / row["t_total_ns"]})
    return result


def _row(series: Series, peer: Peer, samples: list[dict]) -> dict:
    def median(name: str) -> float:
        return statistics.median(sample[name] for sample in samples)

    row = {
        "mpi": series.mpi,
        series.program.noun: series.name,
        "peer": peer.name,
        "mode": DPU if peer.offload else HOST,
        "placement": peer.placement if peer.offload else None,
    }
    row |= {name: samples[0][name] for name in series.program.labels}
    row |= {f"{time}_ns": round(median(f"{time}_ns")) for time in TIMES}
    row["efficiency"] = max(row["t_pure_ns"], row["t_compute_ns"]) / row["t_total_ns"]
    row |= {name: round(median(name)) for name in series.program.medians}
    row["runs"] = len(samples)
    for time in TIMES:
        row[f"{time}_min_ns"] = min(sample[f"{time}_min_ns"] for sample in samples)
        row[f"{time}_max_ns"] = max(sample[f"{time}_max_ns"] for sample in samples)
    row["work_iterations"] = samples[0]["work_iterations"]
    if "work_share" in samples[0]:
        row["work_share"] = min(sample["work_share"] for sample in samples)
    row["verified"] = all(sample["verified"] for sample in samples)
    return row
