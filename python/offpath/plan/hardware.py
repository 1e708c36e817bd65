# SPDX-License-Identifier: BSD-3-Clause
"""Which machine `offpath plan` is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.plan import machine as machines


@dataclass(frozen=True)
class Hardware:
    """The machine."""

    machine: Annotated[
        Optional[Path],
        typer.Option(metavar="FILE", help="What offpath calibrate wrote. Default: this cluster's, or a plain server."),
    ] = None
    dpu_cores: Annotated[
        Optional[int],
        typer.Option(min=0, max=256, help="Cores of each node's DPU; 0: the service shares the ranks' cores."),
    ] = None
    dpu_speed: Annotated[
        Optional[float], typer.Option(min=0.01, max=100, help="Speed of a DPU core, 1 is a host core.")
    ] = None
    link: Annotated[Optional[str], typer.Option(help="Rate of the links, 1kbit to 1.6tbit.")] = None

    def known(self, mpi: str | None = None) -> tuple[dict, bool]:
        """As it was calibrated, and whether it was: the one given, else OFFPATH_MACHINE or this cluster's, which is
        said."""
        file = machines.chosen(self.machine, mpi)
        return (machines.load(file), True) if file else (machines.default(), False)

    def asked(self, known: dict) -> dict:
        """With what is to be otherwise."""
        return machines.changed(known, dpu_cores=self.dpu_cores, dpu_speed=self.dpu_speed, link=self.link)
