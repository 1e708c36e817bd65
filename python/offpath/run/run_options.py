# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath run` is asked, by concern, and checked before anything is started."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import words
from offpath.telemetry import recording
from offpath.telemetry.recording import Quiet

BLOCKING = tuple(row["blocking"] for row in words.rows("policy_rows") if row["blocking"])
LEVELS = ("off", "error", "warn", "info", "debug")


@dataclass(frozen=True)
class Offload:
    """What is offloaded, and how it travels."""

    policy: Annotated[
        Optional[str],
        typer.Option(
            help="What goes to the DPU, like ialltoall:512K-inf:dpu,ialltoallv:host; auto: what pays, found out "
            "while the program runs, but for the rows given with it. Default: what was measured."
        ),
    ] = None
    policy_file: Annotated[
        Optional[str],
        typer.Option(
            metavar="FILE",
            help="Policy in place of what `offpath tune` wrote, put before --policy: one to try, or that many share; "
            "none: no file.",
        ),
    ] = None
    blocking: Annotated[
        Optional[str],
        typer.Option(metavar="LIST", help="Blocking calls to offload too, like alltoall,bcast, or all. Default: none."),
    ] = None
    compress: Annotated[
        Optional[str],
        typer.Option(
            metavar="off|auto|sample|CODEC",
            help="Compress what goes to other nodes: auto, where it pays, or always with lz4, zstd, deflate or zlib; "
            "numbers with a loss by zfp:abs=1e-6 or sz3:rel=1e-4.",
        ),
    ] = None
    off: Annotated[bool, typer.Option("--off", help="Run natively: the other side of a comparison.")] = False

    def blocking_calls(self) -> str | None:
        given = [] if self.blocking in (None, "all", "none") else [word.strip() for word in self.blocking.split(",")]
        for word in given:
            if word not in BLOCKING:
                raise typer.BadParameter(
                    f"'{word}' is not offloaded when blocking. Give all, none or {', '.join(BLOCKING)}."
                )
        return ",".join(given) or self.blocking


@dataclass(frozen=True)
class Service:
    """Where the service runs, and who leaves it the core."""

    cores: Annotated[
        Optional[str],
        typer.Option(metavar="LIST", help="Cores for the service, like 2,3. Default: those that no rank is bound to."),
    ] = None
    share: Annotated[
        bool, typer.Option("--share", help="The service may use the program's own cores: for ranks that leave none.")
    ] = False
    quiet_waits: Annotated[
        bool,
        typer.Option(
            "--quiet-waits",
            help="Ranks that wait in the MPI sleep, natively, too: for cores that others need, or energy. Native "
            "messages come up to 0.2 ms later.",
        ),
    ] = False
    workers: Annotated[
        Optional[int],
        typer.Option(min=1, help="Threads of the service on each node: more, where `offpath top` shows a full one."),
    ] = None
    dpus: Annotated[
        Optional[str],
        typer.Option(
            metavar="FILE|LIST",
            help="DPUs that are other machines, see `offpath dpus`: a file, or [HOST=]DPU:PORT,...; none: none.",
        ),
    ] = None
    dpus_required: Annotated[
        bool, typer.Option("--dpus-required", help="Start nothing unless each of them answers from here.")
    ] = False

    def dpu_variables(self) -> dict[str, str]:
        if self.dpus is None and not self.dpus_required:
            return {}
        from offpath.dpu import dpus_command  # who has none need not wait for it

        return dpus_command.variables(self.dpus, self.dpus_required)


@dataclass(frozen=True)
class Telling:
    """What is said about the run, where, and by which name."""

    stats_file: Annotated[
        Optional[str],
        typer.Option("--stats", metavar="FILE", help="Append one JSON line per rank to FILE, for scripts."),
    ] = None
    log: Annotated[
        Optional[str],
        typer.Option(
            metavar="LEVEL",
            help="What ranks say: off, error, warn, info or debug. debug shows why something is native.",
        ),
    ] = None
    metrics: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="FILE|PORT",
            help="For Prometheus: write the counters to FILE at the end; serve them on [HOST:]PORT during the run.",
        ),
    ] = None
    job_name: Annotated[
        Optional[str],
        typer.Option(metavar="NAME", help="What metrics and traces call this run. Default: the scheduler's job name."),
    ] = None
    quiet: Quiet = False

    def check(self) -> None:
        if self.stats_file:
            recording.check_writable(self.stats_file)
        for file in self.metric_files():
            recording.check_writable(file)
        if self.log is not None and self.log not in LEVELS:
            raise typer.BadParameter(f"'{self.log}' is not a level. Give one of {', '.join(LEVELS)}.")

    def stats(self) -> str | None:
        return os.path.abspath(self.stats_file) if self.stats_file else os.environ.get("OFFPATH_STATS_FILE")

    def addresses(self) -> list[tuple[str, int]]:
        return [address for _, address in self._metrics() if address is not None]

    def metric_files(self) -> list[Path]:
        return [Path(where) for where, address in self._metrics() if address is None]

    def _metrics(self) -> list[tuple[str, tuple[str, int] | None]]:
        if not self.metrics:
            return []
        from offpath.telemetry import prometheus  # a program without it need not wait for what services publish

        return [(where, prometheus.address(where)) for where in self.metrics]
