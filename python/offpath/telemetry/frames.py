# SPDX-License-Identifier: BSD-3-Clause
"""Traces as pandas data frames, for notebooks. pandas is not needed for anything else, and imported here only.

from offpath.telemetry import frames
trace = frames.read("trace.json")
trace.operations.groupby("kind").hidden_ns.sum()
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offpath.base.errors import UserError
from offpath.telemetry import operations, perfetto
from offpath.trace.sites import Site

if TYPE_CHECKING:
    import pandas

RANK = ("rank", "host", "mpi", "reason", "sample", "end_ns", "operations_left_out")
CALL = ("call", "thread", "region", "site", "function", "file", "line", "begin_ns", "end_ns")
OPERATION = (
    "rank", "number", "name", "kind", *CALL[:7], "blocking", "bytes", "path", "why", "algorithm", *CALL[7:],
    "started_ns", "first_byte_ns", "done_ns", "last_peer", "failed", "post_ns", "wait_ns", "lost_ns", "hidden_ns",
    "late_rank", "late_ns",
)  # fmt: skip
WAIT = ("rank", *CALL, "ns", "operations")
REGION = ("rank", "thread", "name", "path", "depth", "begin_ns", "end_ns", "ns", "left_open")


@dataclass(frozen=True)
class Trace:
    """Times in ns since all ranks left MPI_Init. Numbers that are not known are missing (NA)."""

    ranks: pandas.DataFrame  # one row per rank: host, mpi, reason, sample, end_ns
    operations: pandas.DataFrame  # one row per operation of a rank: what it was, where, its way, its times
    waits: pandas.DataFrame  # one row per call that waited: which, where, its times, how many operations it waited for
    regions: pandas.DataFrame  # one row per time through a region that the program names


def read(file: Path | str) -> Trace:
    """Of a file that `offpath run --trace` has written. Raises UserError for any other."""
    try:
        import pandas
    except ImportError:
        raise UserError("pandas is not installed (data frames are its). Run: pip install pandas") from None
    run = perfetto.load(Path(file))

    def frame(columns: tuple[str, ...], rows: Iterable[dict]) -> pandas.DataFrame:
        chosen = [{name: row[name] for name in columns} for row in rows]
        return pandas.DataFrame(chosen, columns=columns).convert_dtypes()

    return Trace(
        frame(RANK, ({"rank": each.number, **vars(each)} for each in run.ranks)),
        frame(OPERATION, map(_operation, run.operations)),
        frame(WAIT, (_wait(rank, each) for rank, waits in run.waits.items() for each in waits)),
        frame(REGION, ({name: getattr(each, name) for name in REGION} for each in run.regions)),
    )


def _operation(each: operations.Operation) -> dict:
    own = {name: getattr(each, name) for name in OPERATION if hasattr(each, name)}
    late_rank, late_ns = each.waited_for  # that it waited for because that had not called it yet, and for how long
    return own | _where(each) | {"late_rank": late_rank, "late_ns": late_ns}


def _wait(rank: int, each: operations.Wait) -> dict:
    own = {"rank": rank, "call": each.call, "thread": each.thread, "begin_ns": each.begin_ns, "end_ns": each.end_ns}
    return own | _where(each) | {"ns": each.ns, "operations": len(each.operations) + each.others}


def _where(call: operations.Operation | operations.Wait) -> dict[str, Any]:
    """function, file and line are those of the call itself; site says also what that is inlined into."""
    site: Site = call.site
    first = site.frames[0] if site.frames else None
    return {
        "region": call.region.path if call.region else None, "site": site.text,
        "function": first.function if first else site.symbol or None,
        "file": first.file if first else None, "line": first.line if first else None,
    }  # fmt: skip
