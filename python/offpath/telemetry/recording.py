# SPDX-License-Identifier: BSD-3-Clause
"""Recording a run: where the ranks write, and what becomes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from offpath.base import console, handover
from offpath.base.errors import UserError, write_error
from offpath.telemetry import batch_job

if TYPE_CHECKING:
    from offpath.telemetry.operations import Run
    from offpath.telemetry.wires import Samples

VARIABLE = "OFFPATH_TRACE"
SAMPLE_VARIABLE = "OFFPATH_TRACE_SAMPLE"


def check_writable(name: str | Path) -> None:
    if Path(name).is_dir():
        raise typer.BadParameter(f"'{name}' is a folder (what is written would have no place). Name a file.")
    folder = Path(name).absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"'{folder}' is not a folder (what is written there would be lost). Make it first.")


@contextlib.contextmanager
def prefix(trace: Path | None) -> Iterator[Path]:
    """What to give the ranks in VARIABLE."""
    with handover.folder(beside=trace) as folder:
        yield folder / "rank"


def finish(
    where: Path, trace: Path | None, summary: bool, wires: Samples, ranks: Sequence[dict] = (),
    job: batch_job.BatchJob | None = None,
) -> None:  # fmt: skip
    """Merges what the ranks wrote. One line where there is nothing: the program's own exit status matters more."""
    from offpath.telemetry import operations, overview  # a program without it need not wait for them
    from offpath.trace import record  # a program without it need not wait for them

    parts = sorted(where.parent.glob(where.name + ".*"))
    try:
        run = operations.join(record.of_parts(parts))
        run.job = job or batch_job.current()
    except UserError as error:
        console.fail(str(error))
        return
    for part in parts:  # the trace may need the room
        part.unlink()
    if trace is not None:
        _write(run, trace, wires)
    if cut := record.cut_short(run.ranks):
        console.fail(cut)
    if summary:
        overview.show(run, console.err, ranks)


def _write(run: Run, trace: Path, wires: Samples) -> None:
    from offpath.telemetry import perfetto
    from offpath.trace import record

    written = False
    with kept(f"the trace {trace}", f"{record.MAKE_ROOM}, or name another file"):
        perfetto.write(run, trace, wires)
        written = True
    if written:
        console.note(
            f"{len(run.operations)} operations: {trace}. Open it at ui.perfetto.dev, or: offpath report {trace}"
        )
    elif trace.is_file():
        trace.unlink()  # half a trace is none


@contextlib.contextmanager
def kept(what: str, cure: str = "Make room there, or name another file") -> Iterator[None]:
    """A file that cannot be written is one line: the program's own exit status matters more."""
    try:
        yield
    except OSError as error:
        console.fail(f"{what} could not be written ({write_error(error.errno)}). {cure}.")
