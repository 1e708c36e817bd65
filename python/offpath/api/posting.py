# SPDX-License-Identifier: BSD-3-Clause
"""A team's non-blocking collectives: each describes its buffers, posts the operation and returns it at once.

All members call the same ones in the same order. Buffers are NumPy arrays or whatever else has the buffer protocol,
C-contiguous; they belong to the operation until it is done. A receive buffer that is not given is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any

from offpath.api import collectives as describing
from offpath.api import results
from offpath.api.buffers import Buffer
from offpath.api.constants import IN_PLACE, Kind, Status
from offpath.api.failures import ArgumentError, failure
from offpath.api.library import library, status_text
from offpath.api.membership import Membership
from offpath.api.operation import Operation, before

if TYPE_CHECKING:
    from offpath.api.buffers import BufferLike

_SEND, _RECV = "the send buffer", "the receive buffer"


class Posting(Membership):
    def after(self, *operations: Operation[Any]) -> None:
        """What this member posts on the team, and on its windows, from now on begins when these are done: tasks, or
        other operations of the session. If one of them fails, the next one posted here does. Waits for nothing."""
        handles = before(self.session, operations, "a team")
        with self._used():
            status = library().offpath_team_after(self._handle, handles if len(handles) else None, len(handles))
        if status != Status.OK:
            raise failure(status, f"after on member {self.rank}: {status_text(status)}")

    def ibarrier(self) -> Operation[None]:
        return self._post("barrier", describing.describe(Kind.BARRIER, (), (), []), None)

    def ibcast(self, buffer: BufferLike, root: int = 0, *, algorithm: str = "default") -> Operation[Any]:
        """From the root's buffer into all others', of as many bytes."""
        root = self._member(root)
        held = Buffer(buffer, writable=self.rank != root)
        block = [describing.block(held)]
        send, recv = (block, []) if self.rank == root else ([], block)
        return self._post(
            "bcast", describing.describe(Kind.BCAST, send, recv, [held], root=root, algorithm=algorithm), buffer
        )

    def iallreduce(
        self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum", *, algorithm: str = "default"
    ) -> Operation[Any]:
        """op of all members' elements, one by one, on all members. recv may be send (in place)."""
        return self._reduce(Kind.ALLREDUCE, send, recv, op, algorithm)

    def iscan(self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum") -> Operation[Any]:
        """op of the elements of members 0 to this one."""
        return self._reduce(Kind.SCAN, send, recv, op, "default")

    def iexscan(self, send: BufferLike, recv: BufferLike | None = None, op: str = "sum") -> Operation[Any]:
        """op of the elements of the members before this one; member 0's receive buffer is not touched."""
        return self._reduce(Kind.EXSCAN, send, recv, op, "default")

    def ireduce(
        self,
        send: BufferLike,
        recv: BufferLike | None = None,
        op: str = "sum",
        root: int = 0,
        *,
        algorithm: str = "default",
    ) -> Operation[Any]:
        """As iallreduce, but the root alone has the result; that of others is None."""
        return self._reduce(Kind.REDUCE, send, recv, op, algorithm, self._member(root))

    def ireduce_scatter(
        self, send: BufferLike, recv: BufferLike | None = None, counts: Sequence[int] | None = None, op: str = "sum"
    ) -> Operation[Any]:
        """op of all members' elements; member i has the i-th part of the result. Without counts: equal parts."""
        source = Buffer(send, what=_SEND)
        operator, element = describing.reduction(op, source)
        counts = None if counts is None else [int(count) for count in counts]
        if recv is None:
            recv = (
                results.share(source, self.size) if counts is None else results.of_items(source, int(counts[self.rank]))
            )
        target = Buffer(recv, writable=True, what=_RECV)
        if counts is None:
            describing.same_size(target, source, self.size)
            counts = [target.items] * self.size
        elif (
            len(counts) != self.size or min(counts) < 0 or sum(counts) != source.items
            or counts[self.rank] != target.items
        ):  # fmt: skip
            raise ArgumentError(
                f"counts {list(counts)[:8]} do not fit {source.items} elements to send and {target.items} to receive "
                "(one count for each member, of elements). Check them."
            )
        describing.apart(source, target, allowed=True)
        describing.same_elements(source, target)
        sizes = describing.longs([count * source.itemsize for count in counts], self.size)
        described = describing.describe(
            Kind.REDUCE_SCATTER, [describing.block(source)], [describing.block(target)], [source, target, sizes],
            operator=operator, element=element, counts_bytes=sizes,
        )  # fmt: skip
        return self._post("reduce_scatter", described, recv)

    def iallgather(
        self, send: BufferLike, recv: BufferLike | None = None, *, algorithm: str = "default"
    ) -> Operation[Any]:
        """All members' buffers, one behind the other, on all members: an array of one more axis where recv is not
        given."""
        source = Buffer(send, what=_SEND)
        recv = results.of_all(source, self.size) if recv is None else recv
        target = Buffer(recv, writable=True, what=_RECV)
        describing.same_size(source, target, self.size)
        items = target.items // self.size
        return self._gather_all(source, target, recv, [items] * self.size, None, algorithm)

    def iallgatherv(
        self, send: BufferLike, counts: Sequence[int], recv: BufferLike | None = None,
        displs: Sequence[int] | None = None, *, algorithm: str = "default",
    ) -> Operation[Any]:  # fmt: skip
        """As iallgather, with counts[i] elements of member i, which begin at displs[i]."""
        source = Buffer(send, what=_SEND)
        if recv is None:
            begins = describing.displacements(counts, displs, self.size)
            recv = results.of_items(source, max(at + int(count) for at, count in zip(begins, counts)))
        target = Buffer(recv, writable=True, what=_RECV)
        return self._gather_all(source, target, recv, counts, displs, algorithm)

    def ialltoall(self, send: BufferLike, recv: BufferLike | None = None) -> Operation[Any]:
        """Part i of `size` equal parts goes to member i. recv may be send (in place)."""
        source = Buffer(send, what=_SEND)
        recv = results.like(source) if recv is None else recv
        target = Buffer(recv, writable=True, what=_RECV)
        describing.same_size(source, target)
        describing.apart(source, target, allowed=True)
        if source.items % self.size:
            raise ArgumentError(
                f"{source.items} elements are no {self.size} equal parts (one for each member). Use alltoallv."
            )
        place = IN_PLACE if source.nbytes and source.address == target.address else source.address
        out = c_void_p()
        with self._used():
            status = library().offpath_alltoall(
                self._handle, place, target.address, source.nbytes // self.size, byref(out)
            )
        return self._posted("alltoall", status, out, [source, target], recv)

    def ialltoallv(
        self, send: BufferLike, send_counts: Sequence[int], recv: BufferLike, recv_counts: Sequence[int],
        send_displs: Sequence[int] | None = None, recv_displs: Sequence[int] | None = None,
    ) -> Operation[Any]:  # fmt: skip
        """send_counts[i] elements from send_displs[i] on go to member i. A peer may send less than recv_counts, never
        more."""
        source, target = Buffer(send, what=_SEND), Buffer(recv, writable=True, what=_RECV)
        describing.apart(source, target)
        sends = describing.parts(source, send_counts, send_displs, self.size)
        recvs = describing.parts(target, recv_counts, recv_displs, self.size)
        return self._post("alltoallv", describing.describe(Kind.EXCHANGE, sends, recvs, [source, target]), recv)

    def igather(self, send: BufferLike, recv: BufferLike | None = None, root: int = 0) -> Operation[Any]:
        """All members' buffers, one behind the other, at the root; the result of others is None."""
        root, source = self._member(root), Buffer(send, what=_SEND)
        sends, keep = [describing.block(source, root)], [source]
        if self.rank != root:
            return self._post("gather", describing.describe(Kind.EXCHANGE, sends, (), keep), None)
        recv = results.of_all(source, self.size) if recv is None else recv
        target = Buffer(recv, writable=True, what=_RECV)
        describing.same_size(source, target, self.size)
        describing.apart(source, target)
        recvs = describing.equal_parts(target, self.size)
        return self._post("gather", describing.describe(Kind.EXCHANGE, sends, recvs, [source, target]), recv)

    def iscatter(self, send: BufferLike | None, recv: BufferLike, root: int = 0) -> Operation[Any]:
        """Part i of the root's buffer goes to member i; what others name as send is not looked at."""
        root, target = self._member(root), Buffer(recv, writable=True, what=_RECV)
        recvs, keep = [describing.block(target, root)], [target]
        if self.rank != root:
            return self._post("scatter", describing.describe(Kind.EXCHANGE, (), recvs, keep), recv)
        if send is None:
            raise ArgumentError(
                "the root of a scatter sends nothing (it has what all others want). Pass a send buffer."
            )
        source = Buffer(send, what=_SEND)
        describing.same_size(target, source, self.size)
        describing.apart(source, target)
        sends = describing.equal_parts(source, self.size)
        return self._post("scatter", describing.describe(Kind.EXCHANGE, sends, recvs, [source, target]), recv)

    def iexchange(
        self, send: Mapping[int, BufferLike], recv: Mapping[int, BufferLike]
    ) -> Operation[Mapping[int, BufferLike]]:
        """Any buffers between any members: send[i] goes to member i, recv[i] is filled by member i. All members take
        part, if with nothing."""
        keep: list[Any] = []
        sends = describing.exchanged(send, self.size, False, keep)
        recvs = describing.exchanged(recv, self.size, True, keep)
        return self._post("exchange", describing.describe(Kind.EXCHANGE, sends, recvs, keep), recv)

    def _reduce(
        self, kind: Kind, send: BufferLike, recv: BufferLike | None, op: str, algorithm: str, root: int | None = None
    ) -> Operation[Any]:
        source = Buffer(send, what=_SEND)
        operator, element = describing.reduction(op, source)
        keep, recvs = [source], []
        if root is not None and root != self.rank:
            recv = None
        else:
            recv = results.like(source) if recv is None else recv
            target = Buffer(recv, writable=True, what=_RECV)
            describing.same_size(source, target)
            describing.apart(source, target, allowed=True)
            describing.same_elements(source, target)
            keep.append(target)
            recvs.append(describing.block(target))
        described = describing.describe(
            kind, [describing.block(source)], recvs, keep, root=root or 0, operator=operator, element=element,
            algorithm=algorithm,
        )  # fmt: skip
        return self._post(kind.name.lower(), described, recv)

    def _gather_all(
        self, source: Buffer, target: Buffer, recv: BufferLike, counts: Sequence[int], displs: Sequence[int] | None,
        algorithm: str,
    ) -> Operation[Any]:  # fmt: skip
        recvs = describing.parts(target, counts, displs, self.size)
        if recvs[self.rank].bytes != source.nbytes:
            raise ArgumentError(
                f"the send buffer has {source.nbytes} bytes and the own part of the receive buffer "
                f"{recvs[self.rank].bytes} (they must agree). Check counts[{self.rank}]."
            )
        for one in recvs:  # their order says whose they are
            one.peer = 0
        if source.address != recvs[self.rank].address:
            describing.apart(source, target)
        described = describing.describe(
            Kind.ALLGATHER, [describing.block(source)], recvs, [source, target], algorithm=algorithm
        )
        return self._post("allgather", described, recv)

    def _post(self, name: str, described: describing.Described, result: Any) -> Operation[Any]:
        collective, keep = described
        out = c_void_p()
        with self._used():
            status = library().offpath_collective(self._handle, byref(collective), byref(out))
        return self._posted(name, status, out, keep, result)

    def _posted(self, name: str, status: int, out: c_void_p, keep: list[Any], result: Any) -> Operation[Any]:
        if status != Status.OK:
            raise failure(status, f"{name} on member {self.rank}: {status_text(status)}")
        operation = Operation(self.session, out.value or 0, keep, result, self.timeout)
        self.session.hold(out.value or 0)
        return operation
