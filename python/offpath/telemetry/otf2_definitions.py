# SPDX-License-Identifier: BSD-3-Clause
"""What an OTF2 archive of a run consists of: nodes, processes, threads and lanes, communicators, regions, attributes.

The module otf2 is handed in: it is imported by who writes an archive, and by nobody else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from offpath.telemetry.operations import Operation, Run
from offpath.trace.parts import MESSAGES, ONE_SIDED

ONE_TO_ALL = ("bcast", "scatter", "scatterv")
ALL_TO_ONE = ("gather", "gatherv", "reduce")
TEXTS = ("call site", "path", "why", "algorithm")
NUMBERS = ("bytes", "operation", "rank", "peer", "tag")


class Definitions:
    """Each is made once, when it is first asked for."""

    def __init__(self, otf2: Any, archive: Any, run: Run):
        self._otf2, self._made, self.run = otf2, archive.definitions, run
        self._kept: dict[tuple, Any] = {}
        enums = otf2.enums
        root = self._made.system_tree_node("run", "machine")
        self.nodes = {host: self._made.system_tree_node(host, "node", root) for host in run.hosts}
        self.processes = {
            rank.number: self._made.location_group(
                f"rank {rank.number}", enums.LocationGroupType.PROCESS, self.nodes[rank.host]
            )
            for rank in run.ranks
        }
        self.ranks = [self.thread(rank.number, 0) for rank in run.ranks]
        self._everybody = self._made.group(
            "all ranks", enums.GroupType.COMM_LOCATIONS, enums.Paradigm.MPI, members=tuple(self.ranks)
        )
        self.attributes = {
            name: self._made.attribute(name, "", kind)
            for names, kind in ((TEXTS, enums.Type.STRING), (NUMBERS, enums.Type.INT64))
            for name in names
        }

    def thread(self, rank: int, number: int) -> Any:
        kind = self._otf2.enums.LocationType.CPU_THREAD
        name = f"rank {rank}" + (f", thread {number}" if number else "")
        return self._once(("thread", rank, number), lambda: self._made.location(name, kind, group=self.processes[rank]))

    def service(self, host: str) -> Any:
        """Its operations are to the program what work on an accelerator's streams is."""
        kind = self._otf2.enums.LocationGroupType.ACCELERATOR
        first = next(rank.number for rank in self.run.ranks if rank.host == host)
        return self._once(
            ("service", host),
            lambda: self._made.location_group(
                f"service on {host}", kind, self.nodes[host], creating_location_group=self.processes[first]
            ),
        )

    def lane(self, host: str, number: int) -> Any:
        kind = self._otf2.enums.LocationType.ACCELERATOR_STREAM
        name = f"service on {host}, lane {number}"
        return self._once(("lane", host, number), lambda: self._made.location(name, kind, group=self.service(host)))

    def counters(self, host: str) -> Any:
        kind, name = self._otf2.enums.LocationType.METRIC, f"service on {host}, counters"
        return self._once(("counters", host), lambda: self._made.location(name, kind, group=self.service(host)))

    def metric(self, name: str) -> Any:
        def make() -> Any:
            enums = self._otf2.enums
            what, _, unit = name.partition(", ")
            member = self._made.metric_member(
                what, "", enums.MetricType.OTHER, enums.MetricMode.ABSOLUTE_NEXT, enums.Type.UINT64, unit=unit or "#"
            )
            return self._made.metric_class((member,), enums.MetricOccurrence.ASYNCHRONOUS)

        return self._once(("metric", name), make)

    def communicator(self, team: tuple) -> Any:
        members, number = team

        def make() -> Any:
            enums = self._otf2.enums
            name = f"{len(members)} ranks, {number}"
            locations = tuple(self.ranks[member] for member in members)
            group = self._made.group(name, enums.GroupType.COMM_GROUP, enums.Paradigm.MPI, members=locations)
            return self._made.comm(name, group)

        return self._once(("communicator", members, number), make)

    def window(self, team: tuple) -> Any:
        """All windows of a communicator are one: traces do not tell them apart."""
        return self._once(("window", team), lambda: self._made.rma_win("windows", self.communicator(team)))

    def function(self, call: str, kind: str = "") -> Any:
        """An MPI function; `kind`: of its operation."""
        roles = self._otf2.enums.RegionRole
        if kind in ONE_SIDED:
            role = roles.RMA
        elif kind in MESSAGES:
            role = roles.POINT2POINT
        elif kind:
            role = {**dict.fromkeys(ONE_TO_ALL, roles.COLL_ONE2ALL), **dict.fromkeys(ALL_TO_ONE, roles.COLL_ALL2ONE),
                    "barrier": roles.BARRIER}.get(kind[1:], roles.COLL_ALL2ALL)  # fmt: skip
        else:
            role = roles.FUNCTION
        return self._region(call, role, self._otf2.enums.Paradigm.MPI)

    def user_region(self, name: str) -> Any:
        return self._region(name, self._otf2.enums.RegionRole.CODE, self._otf2.enums.Paradigm.USER)

    def at_service(self, name: str) -> Any:
        return self._region(name, self._otf2.enums.RegionRole.DATA_TRANSFER, self._otf2.enums.Paradigm.NONE)

    def program(self) -> Any:
        return self._region("program", self._otf2.enums.RegionRole.FUNCTION, self._otf2.enums.Paradigm.USER)

    def collective(self, operation: Operation) -> dict[str, Any]:
        """What OTF2's records of a collective say of one rank's part. A recording has the larger of both sizes."""
        name = operation.kind[1:]
        rooted = name in ONE_TO_ALL or name in ALL_TO_ONE
        is_root = rooted and operation.team[0][operation.root] == operation.rank
        sends = not rooted or is_root == (name in ONE_TO_ALL)
        receives = not rooted or is_root == (name in ALL_TO_ONE)
        return {
            "collective_op": getattr(self._otf2.enums.CollectiveOp, name.upper()),
            "communicator": self.communicator(operation.team),
            "root": operation.root if rooted else self._otf2.enums.Undefined.UINT32.value,
            "size_sent": operation.bytes if sends else 0,
            "size_received": operation.bytes if receives else 0,
        }

    def facts(self, facts: dict[str, Any]) -> dict[Any, Any]:
        return {self.attributes[name]: value for name, value in facts.items() if value not in (None, "")}

    def _region(self, name: str, role: Any, paradigm: Any) -> Any:
        return self._once(
            ("region", name, role, paradigm),
            lambda: self._made.region(name, region_role=role, paradigm=paradigm),
        )

    def _once(self, key: tuple, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]
