# SPDX-License-Identifier: BSD-3-Clause
"""A run that is waited for: what is served while it goes on, and what is said and kept at its end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from offpath.base import console, files, handover, processes
from offpath.base.processes import Completed
from offpath.launch import injection, memory, mpis, own_rank, stats
from offpath.launch.closing_line import closing_line
from offpath.launch.job import Job
from offpath.run.run_options import Telling
from offpath.telemetry import batch_job
from offpath.telemetry import recording as records
from offpath.telemetry.recording import Recording


def run(
    command: list[str], variables: Mapping[str, str], off: bool, recording: Recording, telling: Telling,
    job: Job | None,
) -> int:  # fmt: skip
    """The exit status of `command`. `job`: whose later runs learn from this one."""
    chosen = dict(variables)
    with contextlib.ExitStack() as open_files:
        read_from = None
        if not off:  # not the user's own file: other runs may write into it at the same time
            own = telling.stats()
            folder = open_files.enter_context(handover.folder(Path(own) if own else None))
            read_from = chosen["OFFPATH_STATS_FILE"] = open_files.enter_context(stats.private_file(folder))
        where = open_files.enter_context(recording.prefix())
        if where is not None:
            chosen[records.VARIABLE] = str(where)
        argv, extra = injection.with_variables(command, chosen)
        label = batch_job.current(telling.job_name)
        for address in telling.addresses():
            open_files.enter_context(_served(address, label))
        with recording.watched() as samples:
            result = processes.run(argv, os.environ | extra, capture=False, own_session=False)
        ranks = stats.read(read_from) if read_from else []
        if read_from and telling.stats():
            with records.kept(telling.stats()):
                stats.append(read_from, telling.stats())
        if job is not None:
            memory.keep(job, ranks)
        if read_from and not ranks and (why := files.no_room(folder)):
            console.fail(f"what ranks report could not be written in {folder.parent} ({why}). Make room there.")
        elif not off and not telling.quiet:
            _say(command, ranks, result)
        for file in telling.metric_files():
            _write_metrics(ranks, file, label)
        recording.finish(where, samples, ranks, label)
    return result.exit_status


def _write_metrics(ranks: list[dict], file: Path, label: batch_job.BatchJob) -> None:
    from offpath.telemetry import prometheus  # a program without it need not wait for what services publish

    with records.kept(str(file)):
        prometheus.write(ranks, file, label)


def _say(command: list[str], ranks: Sequence[dict], result: Completed) -> None:
    launcher = mpis.launcher_kind(command[0])
    started = own_rank.job_size() if launcher is None else None
    console.note(closing_line(ranks, launcher, started, result.ending))


@contextlib.contextmanager
def _served(address: tuple[str, int], label: batch_job.BatchJob) -> Iterator[None]:
    from offpath.telemetry import metrics_server  # a program without it need not wait for an HTTP server's modules

    with metrics_server.serving(*address, label) as url:
        console.note(f"metrics at {url}")
        yield
