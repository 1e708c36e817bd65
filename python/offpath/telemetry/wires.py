# SPDX-License-Identifier: BSD-3-Clause
"""What went over the fabric during a run, and when: samples of what the run's services on this node publish."""

import contextlib
import os
import threading
from collections import defaultdict
from dataclasses import dataclass, field

from offpath.errors import UserError
from offpath.telemetry import jobs
from offpath.telemetry.observation import Snapshot

TICK_S = 0.1  # as often as services publish


@dataclass
class Samples:
    """By service (its process): when (CLOCK_MONOTONIC, ns), bytes received and sent so far."""

    of: dict[int, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))

    def note(self, snapshot: Snapshot) -> None:
        workers = snapshot.workers
        when_ns = max(worker.updated_ns for worker in workers)
        series = self.of[snapshot.process]
        if when_ns and (not series or series[-1][0] < when_ns):
            received, sent = sum(each.received_bytes for each in workers), sum(each.sent_bytes for each in workers)
            series.append((when_ns, received, sent))


class Sampler(contextlib.AbstractContextManager):
    """Samples the services of the processes that we start, while it is entered."""

    def __init__(self) -> None:
        self.samples = Samples()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(TICK_S):
            with contextlib.suppress(UserError), jobs.watched(str(os.getpid())) as found:
                self._follow(found)

    def _follow(self, found: list[jobs.Job]) -> None:
        while True:
            ended = all(job.observation.ended() for job in found)
            for job in found:
                self.samples.note(job.look())
            if ended or self._stop.wait(TICK_S):
                return
