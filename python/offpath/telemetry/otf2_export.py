# SPDX-License-Identifier: BSD-3-Clause
"""A trace as an OTF2 archive, which Vampir and its like read: `offpath report --otf2`. Written by the package otf2.

Ranks are processes with a location for each thread; a node's service is one with as many lanes as its operations
overlap, and one for counters. Times are in ns since all ranks left MPI_Init.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from offpath.base.errors import DISK_FULL, UserError
from offpath.telemetry import perfetto
from offpath.telemetry.operations import Operation, Run, Wait
from offpath.telemetry.otf2_definitions import Definitions
from offpath.trace import messages
from offpath.trace.parts import MESSAGES, ONE_SIDED

Event = Callable[[Any, int], None]  # writes something at a time


@dataclass
class Slice:
    begin_ns: int
    end_ns: int
    region: Any
    facts: dict = field(default_factory=dict)
    first: list[Event] = field(default_factory=list)  # right after it was entered
    last: list[Event] = field(default_factory=list)  # right before it is left


def write(trace: Path, folder: Path) -> Path:
    """Gives the archive's anchor. Raises UserError where that cannot be."""
    try:
        import otf2
    except ImportError:
        raise UserError("otf2 is not installed (it writes the archive). Run: pip install otf2") from None
    run, counters = perfetto.load(trace), perfetto.counters(trace)
    if len(run.ranks) < run.ranks[0].ranks:
        raise UserError(f"{trace} is cut short (an archive holds all ranks). Record the run again.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already (an archive is a folder of its own). Give a new one with --otf2.")
    if not os.access(folder.absolute().parent, os.W_OK):
        raise UserError(f"{folder} cannot be written (its parent cannot be). Give another folder with --otf2.")
    with _archive(otf2, folder) as archive:
        archive.creator = "offpath"
        archive.description = ", ".join(f"{name}={value}" for name, value in run.job.labels.items())
        _Export(otf2, archive, run).write(counters)
        if (started_ns := run.ranks[0].realtime_ns) is not None:
            archive._realtime_timestamp = started_ns / 1e9  # of the first event; else it is the export's
    return folder / "traces.otf2"


@contextlib.contextmanager
def _archive(otf2: Any, folder: Path) -> Iterator[Any]:
    """One that could not be written is removed, in one line with what the library says of it on descriptor 2."""
    import _otf2

    errors, said = os.dup(2), os.memfd_create("said")
    sys.stderr.flush()
    os.dup2(said, 2)
    archive = None
    try:
        archive = otf2.writer.Writer(str(folder), timer_resolution=10**9)
        yield archive
        archive.close()
    except BaseException as error:
        if archive is not None:
            archive._handle = None  # else it is closed again when nobody can catch what it says
        shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, _otf2.Error):
            raise
        full = os.strerror(errno.ENOSPC) in os.pread(said, 1 << 16, 0).decode(errors="replace")
        why = DISK_FULL if full else error.description
        cure = "Make room there, or give another folder with --otf2"
        raise UserError(f"{folder} could not be written ({why}). {cure}.", 1) from None
    finally:
        os.dup2(errors, 2)
        os.close(errors)
        os.close(said)


class _Export:
    def __init__(self, otf2: Any, archive: Any, run: Run):
        self._archive, self._run = archive, run
        self._definitions = Definitions(otf2, archive, run)
        self._messages = _matched(run)

    def write(self, counters: list[perfetto.Counter]) -> None:
        locations: dict[Any, list[Slice]] = defaultdict(list)
        for rank in self._run.ranks:
            location = self._definitions.thread(rank.number, 0)
            locations[location].append(Slice(0, rank.end_ns, self._definitions.program()))
        for location, slices in (*self._user_regions(), *self._operations(), *self._waits(), *self._services()):
            locations[location].append(slices)
        for location, slices in locations.items():
            _write(self._archive.event_writer_from_location(location), slices)
        for counter in sorted(counters, key=lambda counter: counter.ns):
            location = self._definitions.counters(self._run.hosts[counter.service])
            writer = self._archive.event_writer_from_location(location)
            writer.metric(counter.ns, self._definitions.metric(counter.name), (counter.value,))

    def _user_regions(self) -> Iterator[tuple[Any, Slice]]:
        for each in self._run.regions:
            region = self._definitions.user_region(each.name)
            yield self._definitions.thread(each.rank, each.thread), Slice(each.begin_ns, each.end_ns, region)

    def _operations(self) -> Iterator[tuple[Any, Slice]]:
        for each in self._run.operations:
            facts = {"call site": each.site.text, "path": each.path, "why": each.why, "algorithm": each.algorithm}
            facts |= {"bytes": each.bytes, "operation": each.number}
            if each.kind in ONE_SIDED or each.kind in MESSAGES:
                facts["peer"] = each.root
            if each.kind in MESSAGES:
                facts["tag"] = each.tag
            region = self._definitions.function(each.call, each.kind)
            made = Slice(each.begin_ns, each.end_ns, region, self._definitions.facts(facts))
            self._begin(each, made)
            if each.blocking:
                self._complete(each, made)
            yield self._definitions.thread(each.rank, each.thread), made

    def _waits(self) -> Iterator[tuple[Any, Slice]]:
        for rank, waits in self._run.waits.items():
            for wait in waits:
                yield self._definitions.thread(rank, wait.thread), self._wait(wait)

    def _wait(self, wait: Wait) -> Slice:
        facts = self._definitions.facts({"call site": wait.site.text})
        made = Slice(wait.begin_ns, wait.end_ns, self._definitions.function(wait.call), facts)
        for each in wait.operations:
            self._complete(each, made)
        return made

    def _services(self) -> Iterator[tuple[Any, Slice]]:
        for host in self._run.hosts:
            for each, lane in perfetto.lanes(self._run, host):
                facts = {"bytes": each.bytes, "operation": each.number, "rank": each.rank, "peer": each.last_peer}
                facts["algorithm"] = each.algorithm
                location = self._definitions.lane(host, lane)
                name = self._definitions.at_service(f"{each.name} at the service")
                yield location, Slice(each.started_ns, each.done_ns, name, self._definitions.facts(facts))
                if each.first_byte_ns is not None:
                    yield location, Slice(each.first_byte_ns, each.done_ns, self._definitions.at_service("data"))

    def _begin(self, each: Operation, made: Slice) -> None:
        """What OTF2 says of an operation when it is posted; `made`: the call."""
        if each.kind in MESSAGES:
            pair = self._messages.get((each.rank, each.number))
            communicator = self._definitions.communicator(each.team)
            if pair and each.kind == "isend":
                said = (each.root, communicator, each.tag, each.bytes)
                if each.blocking:
                    made.first.append(lambda writer, ns: writer.mpi_send(ns, *said))
                else:
                    made.first.append(lambda writer, ns: writer.mpi_isend(ns, *said, each.number))
            elif pair and not each.blocking:
                made.first.append(lambda writer, ns: writer.mpi_irecv_request(ns, each.number))
        elif each.kind in ONE_SIDED:
            window = self._definitions.window(each.team)
            if each.kind == "get":
                made.first.append(lambda writer, ns: writer.rma_get(ns, window, each.root, each.bytes, each.number))
            else:
                made.first.append(lambda writer, ns: writer.rma_put(ns, window, each.root, each.bytes, each.number))
        elif each.blocking:
            made.first.append(lambda writer, ns: writer.mpi_collective_begin(ns))
        else:
            made.first.append(lambda writer, ns: writer.non_blocking_collective_request(ns, each.number))

    def _complete(self, each: Operation, made: Slice) -> None:
        """What OTF2 says when it is done; `made`: the call that knows."""
        if each.kind in MESSAGES:
            pair = self._messages.get((each.rank, each.number))
            communicator = self._definitions.communicator(each.team)
            if pair and each.kind == "isend" and not each.blocking:
                made.last.append(lambda writer, ns: writer.mpi_isend_complete(ns, each.number))
            elif pair and each.kind == "irecv":
                sender, size = each.team[0].index(pair.sender), pair.bytes
                tag = each.tag if each.tag >= 0 else self._tag_of(pair)
                if each.blocking:
                    made.last.append(lambda writer, ns: writer.mpi_recv(ns, sender, communicator, tag, size))
                else:
                    made.last.append(
                        lambda writer, ns: writer.mpi_irecv(ns, sender, communicator, tag, size, each.number)
                    )
        elif each.kind in ONE_SIDED:
            window = self._definitions.window(each.team)
            made.last.append(lambda writer, ns: writer.rma_op_complete_non_blocking(ns, window, each.number))
        else:
            said = self._definitions.collective(each)
            if each.blocking:
                made.last.append(lambda writer, ns: writer.mpi_collective_end(ns, **said))
            else:
                made.last.append(
                    lambda writer, ns: writer.non_blocking_collective_complete(ns, **said, request_id=each.number)
                )

    def _tag_of(self, pair: messages.Pair) -> int:
        return next(each.tag for each in self._run.operations if (each.rank, each.number) == (pair.sender, pair.number))


def _matched(run: Run) -> dict[tuple[int, int], messages.Pair]:
    """Of a sample nobody knows which message a receive got."""
    return {} if any(rank.sample > 1 for rank in run.ranks) else messages.matched(run.ranks)


def _write(writer: Any, slices: list[Slice]) -> None:
    """In the order of their times, each inside what it began in: one that would last longer is cut there."""
    stack: list[Slice] = []

    def leave() -> None:
        top = stack.pop()
        for event in top.last:
            event(writer, top.end_ns)
        writer.leave(top.end_ns, top.region)

    for each in sorted(slices, key=lambda each: (each.begin_ns, -each.end_ns)):
        while stack and stack[-1].end_ns <= each.begin_ns:
            leave()
        if stack:
            each.end_ns = min(each.end_ns, stack[-1].end_ns)
        writer.enter(each.begin_ns, each.region, attributes=each.facts)
        for event in each.first:
            event(writer, each.begin_ns)
        stack.append(each)
    while stack:
        leave()
