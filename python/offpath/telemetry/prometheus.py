# SPDX-License-Identifier: BSD-3-Clause
"""A run's counters in Prometheus' text format: at its end (OFFPATH_STATS_FILE), for the textfile collector of its node
exporter, and live, of what the services publish."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from offpath.closing_line import PETSC
from offpath.errors import UserError
from offpath.telemetry.observation import Snapshot

NAMES = {  # of a rank's line: metric, unit in it, meaning
    "offloaded_count": ("operations_offloaded_total", 1, "Operations that the service did."),
    "native_count": ("operations_native_total", 1, "Operations that stayed on the host."),
    "failed_count": ("operations_failed_total", 1, "Offloaded operations that failed."),
    "offloaded_bytes": ("offloaded_bytes_total", 1, "Bytes that offloaded operations brought."),
    "pulled_bytes": ("pulled_bytes_total", 1, "Bytes from other nodes."),
    "served_bytes": ("served_bytes_total", 1, "Bytes for other nodes."),
    "coded_bytes": ("coded_bytes_total", 1, "Of the bytes for other nodes, those that left compressed."),
    "wire_bytes": ("wire_bytes_total", 1, "What they were then."),
    "lossy_bytes": ("lossy_bytes_total", 1, "Of these bytes, those of numbers of which something was lost."),
    "local_bytes": ("local_bytes_total", 1, "Bytes copied inside the node."),
    "doorbell_count": ("doorbells_total", 1, "Posts that had to wake a worker."),
    "wait_ns": ("wait_seconds_total", 1e-9, "Time in calls that waited for offloaded operations."),
    "post_ns": ("post_seconds_total", 1e-9, "Time in calls that posted them."),
}

LIVE_RANK = {  # of a client: metric, kind, unit in it, meaning
    "posted": ("operations_posted_total", "counter", 1, "Operations that the service was given."),
    "done": ("operations_done_total", "counter", 1, "Of these, those that have ended."),
    "failed": ("operations_failed_total", "counter", 1, "Offloaded operations that failed."),
    "in_flight": ("operations_in_flight", "gauge", 1, "Operations under way."),
    "pulled_bytes": ("pulled_bytes_total", "counter", 1, "Bytes from other nodes."),
    "served_bytes": ("served_bytes_total", "counter", 1, "Bytes for other nodes."),
    "local_bytes": ("local_bytes_total", "counter", 1, "Bytes copied inside the node."),
    "progress_ns": ("progress_seconds_total", "counter", 1e-9, "Time with at least one operation under way."),
    "waited_ns": ("wait_seconds_total", "counter", 1e-9, "Time in calls that waited for offloaded operations."),
}
LIVE_WORKER = {
    "cpu_ns": ("worker_cpu_seconds_total", "counter", 1e-9, "Processor time of a worker of the service."),
    "wakeups": ("worker_wakeups_total", "counter", 1, "How often a worker has slept."),
    "sent_bytes": ("fabric_sent_bytes_total", "counter", 1, "Bytes of blocks sent over the fabric."),
    "received_bytes": ("fabric_received_bytes_total", "counter", 1, "Bytes of blocks received over the fabric."),
    "local_bytes": ("worker_local_bytes_total", "counter", 1, "Bytes copied, reduced or computed on by a worker."),
}


def address(text: str) -> tuple[str, int] | None:
    """(host, port) of PORT or HOST:PORT; None: it is the name of a file."""
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal()) or (colon and (not host or "/" in host)):
        return None
    if int(port) > 65535:
        raise UserError(f"--metrics {text}: there is no port {port}. Give one from 1 to 65535, or 0 for a free one.")
    return host.strip("[]") or "127.0.0.1", int(port)


def text(ranks: list[dict]) -> str:
    return "".join(line + "\n" for line in _lines(ranks))


def write(ranks: list[dict], file: Path) -> None:
    """A collector never sees half of it."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_text(text(ranks))
    partial.replace(file)


def _lines(ranks: list[dict]) -> Iterator[str]:
    for name, (metric, unit, meaning) in NAMES.items():
        rows = [rank for rank in ranks if isinstance(rank.get(name), int)]
        if rows:
            yield from _head(metric, "counter", meaning)
            yield from (_sample(metric, _who(rank), rank[name] * unit) for rank in rows)
    rows = [
        (_who(rank) | {"collective": collective, "path": path}, counts.get(count, 0))
        for rank in ranks
        for collective, counts in rank.get("collectives", {}).items()
        for path, count in (("dpu", "offloaded_count"), ("host", "native_count"))
    ]
    if rows:
        yield from _head("collectives_total", "counter", "Calls by collective and path.")
        yield from (_sample("collectives_total", labels, value) for labels, value in rows)
    if ranks:
        yield from _head("enabled", "gauge", "Whether anything may be offloaded; the label says why not.")
        for rank in ranks:
            labels = _who(rank) | {"reason": str(rank.get("reason", ""))}
            yield _sample("enabled", labels, int(bool(rank.get("enabled"))))
        yield from _service(ranks)


def live_text(services: list[Snapshot], node: str) -> str:
    return "".join(line + "\n" for line in _live_lines(services, node))


def _live_lines(services: list[Snapshot], node: str) -> Iterator[str]:
    ranks, workers = [], []
    for service in services:
        for client in service.clients:
            rank = "" if client.rank is None else str(client.rank)
            ranks.append(({"rank": rank, "process": str(client.process), "node": node}, client))
        for number, worker in enumerate(service.workers):
            workers.append(({"worker": str(number), "process": str(service.process), "node": node}, worker))
    for names, rows in ((LIVE_RANK, ranks), (LIVE_WORKER, workers)):
        for name, (metric, kind, unit, meaning) in names.items():
            yield from _head(metric, kind, meaning)
            yield from (_sample(metric, labels, getattr(each, name) * unit) for labels, each in rows)
    yield from _head("oldest_operation_seconds", "gauge", "Age of the oldest operation under way; 0: there is none.")
    for labels, client in ranks:
        yield _sample("oldest_operation_seconds", labels, client.oldest.age_ns * 1e-9 if client.oldest else 0)


def _service(ranks: list[dict]) -> Iterator[str]:
    """The last rank to report knows most of the processor time that all ranks of a node share."""
    times: dict[str, int] = {}
    for rank in ranks:
        node = str(rank.get("node"))
        times[node] = max(times.get(node, 0), rank.get("service_cpu_ns", 0))
    yield from _head("service_cpu_seconds_total", "counter", "Processor time of a node's service.")
    yield from (_sample("service_cpu_seconds_total", {"node": node}, ns * 1e-9) for node, ns in times.items())


def _head(metric: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP offpath_{metric} {meaning}"
    yield f"# TYPE offpath_{metric} {kind}"


def _who(rank: dict) -> dict[str, str]:
    who = {"rank": str(rank.get("rank", "")), "node": str(rank.get("node", ""))}
    return who | ({"interface": PETSC} if rank.get("mpi") == PETSC else {})  # the rank has a line of MPI, too


def _sample(metric: str, labels: dict[str, str], value: float) -> str:
    pairs = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
    number = f"{value:.9g}" if isinstance(value, float) else str(value)
    return f"offpath_{metric}{{{pairs}}} {number}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
