# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath top` shows: two looks at a job, made into rates, as data and as a screen."""

from __future__ import annotations

from dataclasses import asdict

from rich import box
from rich.console import Group
from rich.text import Text

from offpath.base import words
from offpath.base.oldest import zip_equal
from offpath.base.sizes import rough_size_text
from offpath.base.tables import Table
from offpath.telemetry import network
from offpath.telemetry.jobs import Job
from offpath.telemetry.observation import Client, Oldest, Snapshot, Worker

WORKER_RATES = ("sent_bytes", "received_bytes", "local_bytes", "wakeups", "tasks_done")
CLIENT_RATES = ("done", "pulled_bytes", "served_bytes", "local_bytes")


def job_data(job: Job, before: Snapshot, now: Snapshot) -> dict:
    """Rates per second of the time between the looks; counters since the start."""
    return {
        "job": job.name,
        "service": now.process,
        "far": now.far,
        "ended": False,
        "workers": [_worker(*pair) for pair in zip_equal(before.workers, now.workers)],
        "ranks": _clients(before, now),
    }


def _worker(before: Worker, now: Worker) -> dict:
    seconds = (now.updated_ns - before.updated_ns) / 1e9
    counters = asdict(now)
    del counters["clients"], counters["updated_ns"]
    return {
        **counters,
        "load": _ratio((now.cpu_ns - before.cpu_ns) / 1e9, seconds),
        "network": network.verdict(before, now),
        "tasks_running": (now.tasks_run_ns - before.tasks_run_ns) / 1e9 / seconds if seconds > 0 else 0.0,
        "per_second": {name: _rate(before, now, name, seconds) for name in WORKER_RATES},
    }


def _clients(before: Snapshot, now: Snapshot) -> list[dict]:
    known = {client.id: (client, worker) for worker in before.workers for client in worker.clients}
    updated_ns = {client.id: worker.updated_ns for worker in now.workers for client in worker.clients}
    rows = []
    for client in now.clients:
        first, worker = known.get(client.id, (client, None))
        seconds = (updated_ns[client.id] - worker.updated_ns) / 1e9 if worker else 0.0
        rows.append(_client(first, client, seconds))
    return rows


def _client(before: Client, now: Client, seconds: float) -> dict:
    """Hidden, at least: calls that wait also last until the program has its core again."""
    progress_s = (now.progress_ns - before.progress_ns) / 1e9
    waited_s = (now.waited_ns - before.waited_ns) / 1e9
    return {
        **asdict(now),
        "hidden_ns": max(0, now.progress_ns - now.waited_ns),
        "share": {
            "progress": _ratio(progress_s, seconds),
            "waited": _ratio(waited_s, seconds),
            "hidden": _ratio(max(0.0, progress_s - waited_s), seconds),
        },
        "per_second": {name: _rate(before, now, name, seconds) for name in CLIENT_RATES},
    }


def _rate(before: object, now: object, name: str, seconds: float) -> float:
    return (getattr(now, name) - getattr(before, name)) / seconds if seconds > 0 else 0.0


def _ratio(part_s: float, seconds: float) -> float:
    return min(1.0, max(0.0, part_s / seconds)) if seconds > 0 else 0.0


def screen(jobs: list[dict]) -> Group:
    return Group(*(part for job in jobs for part in _parts(job)))


def _parts(job: dict) -> list:
    return [_title(job), _workers(job), *_network(job), *_tasks(job), _ranks(job)]


def _title(job: dict) -> Text:
    who = "service is on a DPU, its agent process" if job["far"] else "service is process"
    state = "has ended; this is what was last seen" if job["ended"] else f"{who} {job['service']}"
    return Text(f"job {job['job']}: {len(job['ranks'])} ranks here, {state}", style="bold")


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _workers(job: dict) -> Table:
    table = _table("worker", "load", "in/s", "out/s", "copied/s", "wake-ups/s")
    for number, worker in enumerate(job["workers"]):
        rates = worker["per_second"]
        sizes = [rough_size_text(rates[name]) for name in ("received_bytes", "sent_bytes", "local_bytes")]
        table.add_row(str(number), f"{worker['load']:.0%}", *sizes, f"{rates['wakeups']:.0f}")
    return table


def _network(job: dict) -> list[Text]:
    """What the counters of its connections say, if anything."""
    return [
        Text(f"network of worker {number}: {says}.")
        for number, worker in enumerate(job["workers"])
        for says in worker["network"]
    ]


def _tasks(job: dict) -> list[Table]:
    """Nothing for a job without tasks. *running*: executors that ran functions, on average."""
    if not any(worker["tasks_submitted"] or worker["tasks_run_ns"] for worker in job["workers"]):
        return []
    table = _table("tasks of worker", "submitted", "done", "failed", "done/s", "running", "moved", "returned", "rerun")
    for number, worker in enumerate(job["workers"]):
        counts = [str(worker[f"tasks_{name}"]) for name in ("submitted", "done", "failed")]
        moves = [str(worker[f"tasks_{name}"]) for name in ("moved", "returned", "rerun")]
        rates = [f"{worker['per_second']['tasks_done']:.0f}", f"{worker['tasks_running']:.1f}"]
        table.add_row(str(number), *counts, *rates, *moves)
    return [table]


def _ranks(job: dict) -> Table:
    table = _table("rank", "process", "in flight", "done", "done/s", "in/s", "hidden", "waiting", "oldest in flight")
    table.columns[-1].justify = "left"
    for rank in job["ranks"]:
        rates, share = rank["per_second"], rank["share"]
        table.add_row(
            "?" if rank["rank"] is None else str(rank["rank"]), str(rank["process"]), str(rank["in_flight"]),
            str(rank["done"]), f"{rates['done']:.0f}", rough_size_text(rates["pulled_bytes"] + rates["local_bytes"]),
            f"{share['hidden']:.0%}", f"{share['waited']:.0%}", oldest_text(rank["oldest"]),
        )  # fmt: skip
    return table


def oldest_text(oldest: dict | Oldest | None) -> str:
    if oldest is None:
        return ""
    facts = oldest if isinstance(oldest, dict) else asdict(oldest)
    text = f"{facts['kind']}, {rough_size_text(facts['bytes'])}, {facts['age_ns'] / 1e9:.1f} s"
    return f"{text}: {_held_up(facts)}" if facts["waits"] != "nothing" else text


def _held_up(facts: dict) -> str:
    shown = ", ".join(map(str, facts["members"])) + (", ..." if facts["members_count"] > len(facts["members"]) else "")
    ranks = ("rank " if facts["members_count"] == 1 else "ranks ") + shown
    (text,) = (row["text"] for row in words.rows("waits") if row["name"] == facts["waits"])
    return text.replace("RANKS", ranks)
