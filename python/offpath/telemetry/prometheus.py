# SPDX-License-Identifier: BSD-3-Clause
"""A run's counters as Prometheus' metrics: at its end (OFFPATH_STATS_FILE), for the textfile collector of its node
exporter, and live, of what the services publish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from offpath.base import words
from offpath.base.errors import UserError
from offpath.launch.closing_line import PETSC
from offpath.telemetry.batch_job import BatchJob
from offpath.telemetry.observation import Snapshot

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

PREFIX = "offpath_"
Row = tuple[dict[str, str], float]  # labels and value of a sample


def _unit(name: str) -> float:
    return {"ns": 1e-9, "uj": 1e-6}.get(name.rpartition("_")[2], 1)


NAMES = {  # of a rank's line: metric, unit in it, meaning
    row["name"]: (row["metric"], _unit(row["name"]), row["about"])
    for row in words.rows("counters", "COUNTER", "REPORTED")
    if row["metric"]
}


def _live(macro: str) -> dict[str, tuple[str, str, float, str]]:
    """Of what is published: metric, kind, unit in it, meaning."""
    return {
        row["name"]: (
            row["metric"], "counter" if row["metric"].endswith("_total") else "gauge",
            _unit(row["name"]), row["about"],
        )
        for row in words.rows("observed", macro)
        if row["metric"]
    }  # fmt: skip


LIVE_RANK, LIVE_WORKER = _live("OBSERVED_CLIENT"), _live("OBSERVED_WORKER")
OLDEST = ("oldest_operation_seconds", "gauge", "Age of the oldest operation under way; 0: there is none.")


def address(text: str) -> tuple[str, int] | None:
    """(host, port) of PORT or HOST:PORT; None: it is the name of a file."""
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal()) or (colon and (not host or "/" in host)):
        return None
    if int(port) > 65535:
        raise UserError(f"--metrics {text}: there is no port {port}. Give one from 1 to 65535, or 0 for a free one.")
    return host.strip("[]") or "127.0.0.1", int(port)


def at_end(ranks: list[dict], job: BatchJob) -> Iterator[Metric]:
    """Of the lines that the ranks have reported."""
    for name, (metric, unit, meaning) in NAMES.items():
        rows = [(_who(rank), rank[name] * unit) for rank in ranks if isinstance(rank.get(name), int)]
        if rows:
            yield _family(metric, "counter", meaning, rows, job)
    rows = [
        (_who(rank) | {"collective": collective, "path": path}, counts.get(count, 0))
        for rank in ranks
        for collective, counts in rank.get("collectives", {}).items()
        for path, count in (("dpu", "offloaded_count"), ("host", "native_count"))
    ]
    if rows:
        yield _family("collectives_total", "counter", "Calls by collective and path.", rows, job)
    if ranks:
        rows = [(_who(rank) | {"reason": str(rank.get("reason", ""))}, bool(rank.get("enabled"))) for rank in ranks]
        yield _family("enabled", "gauge", "Whether anything may be offloaded; the label says why not.", rows, job)
        yield _family(
            "service_cpu_seconds_total", "counter", "Processor time of a node's service.", _service(ranks), job
        )


def live(services: list[Snapshot], node: str, job: BatchJob) -> Iterator[Metric]:
    """Of what the services of this node publish."""
    ranks, workers = [], []
    for service in services:
        for client in service.clients:
            rank = "" if client.rank is None else str(client.rank)
            ranks.append(({"rank": rank, "process": str(client.process), "node": node}, client))
        for number, worker in enumerate(service.workers):
            workers.append(({"worker": str(number), "process": str(service.process), "node": node}, worker))
    for names, of in ((LIVE_RANK, ranks), (LIVE_WORKER, workers)):
        for name, (metric, kind, unit, meaning) in names.items():
            yield _family(metric, kind, meaning, [(labels, getattr(each, name) * unit) for labels, each in of], job)
    rows = [(labels, client.oldest.age_ns * 1e-9 if client.oldest else 0) for labels, client in ranks]
    yield _family(*OLDEST, rows, job)


def registry(families: Callable[[], Iterable[Metric]]) -> CollectorRegistry:
    """One that asks each time it is collected."""
    from prometheus_client import CollectorRegistry  # nothing else needs it, and programs need not wait for it

    class Collector:
        def collect(self) -> Iterable[Metric]:
            return families()

    made = CollectorRegistry(auto_describe=False)
    made.register(Collector())
    return made


def write(ranks: list[dict], file: Path, job: BatchJob) -> None:
    """A collector never sees half of it."""
    from prometheus_client import write_to_textfile

    write_to_textfile(str(file), registry(lambda: at_end(ranks, job)))


def _family(metric: str, kind: str, meaning: str, rows: Iterable[Row], job: BatchJob) -> Metric:
    from prometheus_client.core import Metric

    family = Metric(PREFIX + metric.removesuffix("_total"), meaning, kind)
    for labels, value in rows:
        family.add_sample(PREFIX + metric, labels | job.labels, value)
    return family


def _service(ranks: list[dict]) -> list[Row]:
    """The last rank to report knows most of the processor time that all ranks of a node share."""
    times: dict[str, int] = {}
    for rank in ranks:
        node = str(rank.get("node"))
        times[node] = max(times.get(node, 0), rank.get("service_cpu_ns", 0))
    return [({"node": node}, ns * 1e-9) for node, ns in times.items()]


def _who(rank: dict) -> dict[str, str]:
    who = {"rank": str(rank.get("rank", "")), "node": str(rank.get("node", ""))}
    return who | ({"interface": PETSC} if rank.get("mpi") == PETSC else {})  # the rank has a line of MPI, too
