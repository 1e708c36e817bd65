# SPDX-License-Identifier: BSD-3-Clause
"""Recording a run: where the ranks write, and what becomes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from offpath import console, handover
from offpath.errors import UserError
from offpath.telemetry import batch_job

if TYPE_CHECKING:
    from offpath.telemetry.wires import Samples

VARIABLE = "OFFPATH_TRACE"
SAMPLE_VARIABLE = "OFFPATH_TRACE_SAMPLE"


def check_writable(name: str | Path) -> None:
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
    from offpath.telemetry import operations, overview, perfetto, record  # a program without it need not wait for them

    try:
        run = operations.join(record.of_parts(sorted(where.parent.glob(where.name + ".*"))))
        run.job = job or batch_job.current()
    except UserError as error:
        console.fail(str(error))
        return
    if trace is not None:
        perfetto.write(run, trace, wires)
        console.note(
            f"{len(run.operations)} operations: {trace}. Open it at ui.perfetto.dev, or: offpath report {trace}"
        )
    if summary:
        overview.show(run, console.err, ranks)
