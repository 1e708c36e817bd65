# SPDX-License-Identifier: BSD-3-Clause
"""What went over the fabric during a run, and when: samples of what its services publish."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from offpath.base.errors import UserError
from offpath.telemetry import jobs
from offpath.telemetry.observation import Observation, Snapshot

TICK_S = 0.1  # as often as services publish
END_S = 0.5  # for a service to follow its clients; it publishes a last time then


@dataclass
class Samples:
    """By service (its process): when (CLOCK_MONOTONIC, ns), bytes received and sent so far."""

    of: dict[int, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))

    def begin(self, observation: Observation) -> None:
        series = self.of[observation.process]
        if not series:
            series.append((observation.started_ns, 0, 0))

    def note(self, snapshot: Snapshot) -> None:
        workers = snapshot.workers
        when_ns = max(worker.updated_ns for worker in workers)
        series = self.of[snapshot.process]
        if when_ns and (not series or series[-1][0] < when_ns):
            received, sent = sum(each.received_bytes for each in workers), sum(each.sent_bytes for each in workers)
            series.append((when_ns, received, sent))


class Sampler(contextlib.AbstractContextManager):
    """While it is entered, samples the services that jobs.watched(which, folder) finds, into `samples`."""

    def __init__(self, samples: Samples, which: str | None, folder: Path | None = None) -> None:
        self._samples, self._which, self._folder = samples, which, folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(TICK_S):
            with contextlib.suppress(UserError), jobs.watched(self._which, self._folder) as found:
                for job in found:
                    self._samples.begin(job.observation)
                self._follow(found)

    def _follow(self, found: list[jobs.Job]) -> None:
        stopped = False
        while not stopped and not all(job.observation.ended() for job in found):
            for job in found:
                self._samples.note(job.look())
            stopped = self._stop.wait(TICK_S)
        until = time.monotonic() + END_S
        while not all(job.observation.ended() for job in found) and time.monotonic() < until:
            time.sleep(TICK_S / 10)
        for job in found:
            self._samples.note(job.look())
