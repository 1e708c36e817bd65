# SPDX-License-Identifier: BSD-3-Clause
"""Recording a run: what is asked for, where the ranks write, and what becomes of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from offpath.base import console, handover
from offpath.base.errors import UserError, write_error
from offpath.launch import stats
from offpath.telemetry import batch_job

if TYPE_CHECKING:
    from offpath.telemetry.operations import Run
    from offpath.telemetry.wires import Samples

VARIABLE = "OFFPATH_TRACE"
SAMPLE_VARIABLE = "OFFPATH_TRACE_SAMPLE"

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No line at the end.")]


def check_writable(name: str | Path) -> None:
    if Path(name).is_dir():
        raise typer.BadParameter(f"'{name}' is a folder (what is written would have no place). Name a file.")
    folder = Path(name).absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"'{folder}' is not a folder (what is written there would be lost). Make it first.")


@dataclass(frozen=True)
class Recording:
    """What is written down of each operation."""

    trace: Annotated[
        Optional[Path], typer.Option(metavar="FILE", help="Record every operation; FILE opens in Perfetto.")
    ] = None
    trace_sample: Annotated[
        Optional[int],
        typer.Option(
            min=1,
            metavar="N",
            help="Record one of N operations of each call site and communicator, where a trace grows too "
            "large. Default: every.",
        ),
    ] = None
    summary: Annotated[
        bool, typer.Option("--summary", help="Record every operation and say what was hidden and what was lost.")
    ] = False

    @property
    def asked(self) -> bool:
        return self.trace is not None or self.summary

    def checked(self, off: bool) -> Recording:
        """What is recorded then. `off`: the run is native."""
        if self.trace is not None:
            check_writable(self.trace)
        if off and self.asked:
            console.note(f"{'--trace' if self.trace is not None else '--summary'} records nothing with --off.")
        if self.trace_sample is not None and not self.asked:
            raise typer.BadParameter(
                "--trace-sample is about a recording (there is none). Give --trace or --summary, too."
            )
        return Recording() if off else self

    def variables(self) -> dict[str, str]:
        return {} if self.trace_sample is None else {SAMPLE_VARIABLE: str(self.trace_sample)}

    @contextlib.contextmanager
    def prefix(self) -> Iterator[Path | None]:
        """What to give the ranks in VARIABLE; None where nothing is recorded."""
        with handover.folder(beside=self.trace) if self.asked else contextlib.nullcontext() as folder:
            yield folder and folder / "rank"

    @contextlib.contextmanager
    def watched(self) -> Iterator[Samples | None]:
        """What services of this node publish meanwhile, for a trace."""
        if self.trace is None:
            yield None
            return
        from offpath.telemetry import wires

        samples = wires.Samples()
        with wires.Sampler(samples, str(os.getpid())):
            yield samples

    def finish(
        self,
        where: Path | None,
        wires: Samples | None,
        ranks: Sequence[dict] = (),
        job: batch_job.BatchJob | None = None,
    ) -> None:
        """Merges what the ranks wrote. One line where there is nothing: the program's own exit status matters more."""
        if where is None:
            return
        from offpath.telemetry import operations, overview  # a program without it need not wait for them
        from offpath.trace import record

        parts = sorted(where.parent.glob(where.name + ".*"))
        try:
            run = operations.join(record.of_parts(parts))
            run.job = job or batch_job.current()
            run.cost = stats.cost(list(ranks))
        except UserError as error:
            console.fail(str(error))
            return
        for part in parts:  # the trace may need the room
            part.unlink()
        if self.trace is not None:
            _write(run, self.trace, wires)
        if cut := record.cut_short(run.ranks):
            console.fail(cut)
        if self.summary:
            overview.show(run, console.err, ranks)


def _write(run: Run, trace: Path, wires: Samples | None) -> None:
    from offpath.telemetry import perfetto
    from offpath.trace import record

    with kept(f"the trace {trace}", f"{record.MAKE_ROOM}, or name another file"):
        perfetto.write(run, trace, wires)
        console.note(
            f"{len(run.operations)} operations: {trace}. Open it at ui.perfetto.dev, or: offpath report {trace}"
        )


@contextlib.contextmanager
def kept(what: str, cure: str = "Make room there, or name another file") -> Iterator[None]:
    """A file that cannot be written is one line: the program's own exit status matters more."""
    try:
        yield
    except OSError as error:
        console.fail(f"{what} could not be written ({write_error(error.errno)}). {cure}.")
