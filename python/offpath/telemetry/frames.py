# SPDX-License-Identifier: BSD-3-Clause
"""Traces as pandas data frames, for notebooks. pandas is not needed for anything else, and imported here only.

from offpath.telemetry import frames
trace = frames.read("trace.json")
trace.operations.groupby("kind").hidden_ns.sum()
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from offpath.errors import UserError
from offpath.telemetry import operations, perfetto, record

if TYPE_CHECKING:
    import pandas

OPERATION = (
    "rank", "number", "name", "kind", "blocking", "bytes", "path", "why", "algorithm", "site", "begin_ns", "end_ns",
    "started_ns", "first_byte_ns", "done_ns", "last_peer", "failed", "post_ns", "wait_ns", "lost_ns", "hidden_ns",
)  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """Times in ns since all ranks left MPI_Init. Numbers that are not known are missing (NA)."""

    ranks: pandas.DataFrame  # one row per rank: host, mpi, reason, sample, end_ns
    operations: pandas.DataFrame  # one row per operation of a rank: what it was, its way, its times
    waits: pandas.DataFrame  # one row per call that waited: name, times, how many operations it waited for


def read(file: Path | str) -> Trace:
    """Of a file that `offpath run --trace` has written. Raises UserError for any other."""
    try:
        import pandas
    except ImportError:
        raise UserError("pandas is not installed (data frames are its). Run: pip install pandas") from None
    file = Path(file)
    run = operations.join(record.load(file), perfetto.site_names(file))
    ranks = [
        {
            "rank": each.number, "host": each.host, "mpi": each.mpi, "reason": each.reason, "sample": each.sample,
            "end_ns": each.end_ns, "operations_left_out": each.operations_left_out,
        }
        for each in run.ranks
    ]  # fmt: skip
    rows = [{name: getattr(each, name) for name in OPERATION} | _late(each) for each in run.operations]
    waits = [
        {
            "rank": rank, "name": each.name, "site": each.site, "begin_ns": each.begin_ns, "end_ns": each.end_ns,
            "ns": each.ns, "operations": len(each.operations) + each.others,
        }
        for rank, called in run.waits.items()
        for each in called
    ]  # fmt: skip
    return Trace(*(pandas.DataFrame(each).convert_dtypes() for each in (ranks, rows, waits)))


def _late(operation: operations.Operation) -> dict:
    """The rank that it waited for because that had not called it yet, and for how long."""
    rank, ns = operation.waited_for
    return {"late_rank": rank, "late_ns": ns}
