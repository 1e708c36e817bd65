# SPDX-License-Identifier: BSD-3-Clause
"""What the services of a job take while its ranks wait for being looked at (bench/scale/main.cpp)."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from types import TracebackType

from offpath.base import proc
from offpath.bench import fault_kills

LOOK_S = 0.005


class Sampler:
    """Looks at the job's services whenever its ranks have stopped, and lets them go on.

    `env`: of the ranks, from which services have it, too. `found`: of each stage, over all services."""

    def __init__(self, stop: Path) -> None:
        self.stop = stop
        self.found: list[dict] = []
        self.env = {"SCALE_STOP": str(stop)}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            file = self.stop.with_name(f"{self.stop.name}.{len(self.found)}")
            if file.exists():
                self.found.append(_taken_by(fault_kills.services(self.env)))
                file.unlink()


def _taken_by(services: list[int]) -> dict:
    taken = {"service_pss_kib": 0, "service_descriptors_count": 0, "service_threads_count": 0, "service_cpu_ns": 0}
    for service in services:
        folder = Path(f"/proc/{service}")
        with contextlib.suppress(OSError):
            lines = dict(line.split(":", 1) for line in (folder / "smaps_rollup").read_text().splitlines()[1:])
            taken["service_pss_kib"] += int(lines["Pss"].split()[0])
            taken["service_descriptors_count"] += len(os.listdir(folder / "fd"))
            taken["service_threads_count"] += len(os.listdir(folder / "task"))
            ticks = sum(map(int, proc.stat(service)[11:13]))
            taken["service_cpu_ns"] += ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return taken
