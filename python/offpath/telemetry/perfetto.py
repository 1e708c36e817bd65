# SPDX-License-Identifier: BSD-3-Clause
"""The trace: a run in Chrome's trace event format, which Perfetto opens, with the recording beside it.

A process per rank holds, thread by thread, the regions that the program names and its calls; a process per service as
many lanes as its operations overlap, with the time in which bytes moved inside each, and counters of what is in
progress. Flows lead from a posting call through the service to the wait. Services that were watched have counters of
what went over the fabric.
"""

from __future__ import annotations

import contextlib
import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from offpath.base import files
from offpath.launch.stats import Cost
from offpath.telemetry import operations
from offpath.telemetry.batch_job import BatchJob
from offpath.telemetry.operations import Operation, Run, Wait
from offpath.telemetry.wires import Samples
from offpath.trace import record
from offpath.trace.record import FORMAT, VERSION
from offpath.trace.sites import UNKNOWN, from_json

CALLS = 1  # the first thread of a rank's process
SERVICES = 1_000_000  # process numbers of the services begin there: above all ranks'


def write(run: Run, file: Path, wires: Samples | None = None) -> None:
    sites = {each.site for each in run.operations} | {wait.site for waits in run.waits.values() for wait in waits}
    known = sorted(sites - {UNKNOWN}, key=lambda site: (site.file, site.offset))
    trace = {
        "traceEvents": events(run, wires or Samples()),
        "displayTimeUnit": "ms",
        "offpath": {
            "format": FORMAT,
            "version": VERSION,
            "job": run.job.labels,
            "cost": run.cost.to_json(),
            "ranks": [rank.lines for rank in run.ranks],
            "sites": [[[site.file, site.offset], site.text] for site in known],
            "frames": [site.to_json() for site in known],
        },
    }
    files.write_text(file, json.dumps(trace, separators=(",", ":")) + "\n")


def load(file: Path) -> Run:
    """What write() has written. Raises UserError for any other file."""
    recording = record.read(file)
    run = operations.join(record.of_recording(recording, str(file)), from_json(recording.get("frames")))
    job = recording.get("job")
    if isinstance(job, dict):
        run.job = BatchJob(str(job.get("job_id", "")), str(job.get("job_name", "")))
    run.cost = Cost.from_json(recording.get("cost"))
    return run


def events(run: Run, wires: Samples) -> list[dict]:
    """In the order of their times, but for what names the tracks, which comes first."""
    timed = [*_user_regions(run), *_calls(run), *_services(run), *_wires(run, wires)]
    return [*_titles(run), *sorted(timed, key=lambda event: (event["ts"], -event.get("dur", 0)))]


def _titles(run: Run) -> Iterator[dict]:
    for rank in run.ranks:
        yield from _title(rank.number, f"rank {rank.number} ({rank.host})", "calls")
        for thread in sorted(_threads(run, rank.number) - {0}):
            yield _thread_name(rank.number, CALLS + thread, f"calls, thread {thread}")
    for number, host in enumerate(run.hosts):
        pid = next(rank.service_pid for rank in run.ranks if rank.host == host)
        yield from _title(SERVICES + number, f"service on {host}" + (f", process {pid}" if pid else ""), None)


def _title(process: int, name: str, thread: str | None) -> Iterator[dict]:
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": CALLS, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": process, "tid": CALLS, "args": {"sort_index": process}}
    if thread:
        yield _thread_name(process, CALLS, thread)


def _thread_name(process: int, thread: int, name: str) -> dict:
    return {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}


def _threads(run: Run, rank: int) -> set[int]:
    return {each.thread for each in (*run.operations_of[rank], *run.regions_of[rank], *run.waits[rank])}


def _slice(name: str, process: int, thread: int, begin_ns: float, end_ns: float, arguments: dict) -> dict:
    return {
        "ph": "X", "name": name, "cat": "offpath", "pid": process, "tid": thread, "ts": begin_ns / 1000,
        "dur": (end_ns - begin_ns) / 1000, "args": arguments,
    }  # fmt: skip


def _user_regions(run: Run) -> Iterator[dict]:
    for each in run.regions:
        facts = {"region": each.path} | ({"left open": True} if each.left_open else {})
        yield _slice(each.name, each.rank, CALLS + each.thread, each.begin_ns, each.end_ns, facts)


def _calls(run: Run) -> Iterator[dict]:
    for each in run.operations:
        facts = {"call": each.call, "bytes": each.bytes, "path": each.path, "why": each.why}
        facts |= {"call site": each.site.text}
        if each.path == "dpu":
            facts |= {"algorithm": each.algorithm, "hidden_us": each.hidden_ns / 1000}
        yield _slice(each.name, each.rank, CALLS + each.thread, each.begin_ns, each.end_ns, facts)
        yield from _flow(each, run)
    for rank, waits in run.waits.items():
        for wait in waits:
            yield _slice(wait.call, rank, CALLS + wait.thread, wait.begin_ns, wait.end_ns, _facts(wait))


def _facts(wait: Wait) -> dict:
    return {"call site": wait.site.text, "operations": [f"{each.name} {each.number}" for each in wait.operations]}


def _flow(each: Operation, run: Run) -> Iterator[dict]:
    if each.wait is None:
        return
    flow = {"name": each.name, "cat": "offpath", "id": f"{each.rank}.{each.number}"}
    yield {"ph": "s", **flow, "pid": each.rank, "tid": CALLS + each.thread, "ts": each.begin_ns / 1000}
    thread, end_ns = CALLS + each.wait.thread, _flow_end_ns(each, each.wait)
    yield {"ph": "f", "bp": "e", **flow, "pid": each.rank, "tid": thread, "ts": end_ns / 1000}


def _flow_end_ns(each: Operation, wait: Wait) -> int:
    arrives_ns = wait.end_ns if each.done_ns is None else max(wait.begin_ns, each.done_ns)
    return min(arrives_ns, max(wait.begin_ns, wait.end_ns - 1))  # inside the slice


@dataclass(frozen=True)
class Counter:
    """One value of a service's counter, from that time on."""

    service: int  # as in Run.hosts
    name: str
    ns: int
    value: int


def counters(file: Path) -> list[Counter]:
    """Of a trace that load() has found to be one; what makes no sense is left out."""
    found = []
    for event in (files.json_if_any(file) or {}).get("traceEvents", ()):
        if not isinstance(event, dict) or event.get("ph") != "C":
            continue
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
            (value,) = event["args"].values()
            made = Counter(event["pid"] - SERVICES, str(event["name"]), round(event["ts"] * 1000), int(value))
            if made.service >= 0 and made.ns >= 0 and made.value >= 0:
                found.append(made)
    return found


def lanes(run: Run, host: str) -> Iterator[tuple[Operation, int]]:
    """What the service on a host did, each with the number of its lane, from 1."""
    there = {rank.number for rank in run.ranks if rank.host == host}
    served = [each for each in run.operations if each.done_ns is not None and each.rank in there]
    return _lanes(sorted(served, key=lambda each: each.started_ns))


def _services(run: Run) -> Iterator[dict]:
    for number, host in enumerate(run.hosts):
        own = []
        for each, lane in lanes(run, host):
            own.append(each)
            facts = {"rank": each.rank, "bytes": each.bytes, "algorithm": each.algorithm, "last peer": each.last_peer}
            yield _slice(each.name, SERVICES + number, lane, each.started_ns, each.done_ns, facts)
            if each.first_byte_ns is not None:
                yield _slice("data", SERVICES + number, lane, each.first_byte_ns, each.done_ns, {})
            # A flush that is local may be over before the service begins.
            if each.wait is not None and each.started_ns <= _flow_end_ns(each, each.wait):
                yield {
                    "ph": "t", "name": each.name, "cat": "offpath", "id": f"{each.rank}.{each.number}",
                    "pid": SERVICES + number, "tid": lane, "ts": each.started_ns / 1000,
                }  # fmt: skip
        yield from _in_progress(own, SERVICES + number)


def _lanes(operations: list[Operation]) -> Iterator[tuple[Operation, int]]:
    """Each with the first lane that is free when it starts; slices of one lane must not overlap."""
    busy: list[tuple[int, int]] = []  # until when, lane
    free: list[int] = []
    used = 0
    for each in operations:
        while busy and busy[0][0] <= each.started_ns:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            used += 1
            heapq.heappush(free, used)
        lane = heapq.heappop(free)
        heapq.heappush(busy, (each.done_ns, lane))
        yield each, lane


def _in_progress(operations: list[Operation], process: int) -> Iterator[dict]:
    changes: dict[int, list[int]] = {}
    for each in operations:
        for time, sign in ((each.started_ns, 1), (each.done_ns, -1)):
            change = changes.setdefault(time, [0, 0])
            change[0] += sign
            change[1] += sign * each.bytes
    count = size = 0
    for time, (more, larger) in sorted(changes.items()):
        count, size = count + more, size + larger
        for name, value in (("operations", count), ("bytes", size)):
            yield {"ph": "C", "name": f"{name} in progress", "pid": process, "ts": time / 1000, "args": {name: value}}


def _wires(run: Run, wires: Samples) -> Iterator[dict]:
    """Rates between samples: each is a counter's value from the sample at its beginning on. Nothing is moved before all
    have left MPI_Init."""
    for rank in {rank.service_pid: rank for rank in reversed(run.ranks)}.values():
        process, series = SERVICES + run.hosts.index(rank.host), wires.of.get(rank.service_pid, [])
        if rank.zero_ns is None:
            continue
        for number, name in ((1, "in"), (2, "out")):
            track = {"ph": "C", "name": f"fabric {name}, bytes/s", "pid": process}
            for before, after in zip(series, series[1:]):
                begin_ns, end_ns = max(0, before[0] - rank.zero_ns), after[0] - rank.zero_ns
                if end_ns > 0:
                    rate = (after[number] - before[number]) / (end_ns - begin_ns) * 1e9
                    yield {**track, "ts": begin_ns / 1000, "args": {"bytes/s": round(rate)}}
            if series and series[-1][0] > rank.zero_ns:
                yield {**track, "ts": (series[-1][0] - rank.zero_ns) / 1000, "args": {"bytes/s": 0}}
