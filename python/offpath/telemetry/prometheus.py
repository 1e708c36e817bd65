# SPDX-License-Identifier: BSD-3-Clause
"""A run's counters (OFFPATH_STATS_FILE) in Prometheus' text format, for its node exporter's textfile collector."""

import os
from collections.abc import Iterator
from pathlib import Path

NAMES = {  # of a rank's line: metric, unit in it, meaning
    "offloaded_count": ("operations_offloaded_total", 1, "Operations that the service did."),
    "native_count": ("operations_native_total", 1, "Operations that stayed on the host."),
    "failed_count": ("operations_failed_total", 1, "Offloaded operations that failed."),
    "offloaded_bytes": ("offloaded_bytes_total", 1, "Bytes that offloaded operations brought."),
    "pulled_bytes": ("pulled_bytes_total", 1, "Bytes from other nodes."),
    "served_bytes": ("served_bytes_total", 1, "Bytes for other nodes."),
    "local_bytes": ("local_bytes_total", 1, "Bytes copied inside the node."),
    "doorbell_count": ("doorbells_total", 1, "Posts that had to wake a worker."),
    "wait_ns": ("wait_seconds_total", 1e-9, "Time in calls that waited for offloaded operations."),
    "post_ns": ("post_seconds_total", 1e-9, "Time in calls that posted them."),
}


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
    return {"rank": str(rank.get("rank", "")), "node": str(rank.get("node", ""))}


def _sample(metric: str, labels: dict[str, str], value: float) -> str:
    pairs = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
    number = f"{value:.9g}" if isinstance(value, float) else str(value)
    return f"offpath_{metric}{{{pairs}}} {number}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
