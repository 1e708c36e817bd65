# SPDX-License-Identifier: BSD-3-Clause
"""The backend "offpath" of torch.distributed: collectives on tensors in the host's memory, moved by the service while
the program computes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed
from torch._C._distributed_c10d import ProcessGroup as TorchProcessGroup

from offpath.api.failures import ArgumentError
from offpath.api.operation import Operation
from offpath.api.session import Session
from offpath.torch.groups import Channels, team_of
from offpath.torch.tensors import Reduction, alike, array_of, flat, one
from offpath.torch.works import Work, together

NAME = "offpath"
Tensors = Sequence[torch.Tensor]


class ProcessGroup(TorchProcessGroup):  # type: ignore[misc]
    """What torch.distributed calls; names and arguments are torch's. `out[i]` and `given[i]` are of rank i."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta):
        super().__init__(rank, size)
        self._team = team_of(store, rank, size, timeout.total_seconds())
        self._team.timeout = timeout.total_seconds()
        self._channels = Channels(self._team)
        self._name = ""

    @property
    def session(self) -> Session:
        return self._team.session

    def getBackendName(self) -> str:
        return NAME

    @property
    def group_name(self) -> str:
        """torch itself keeps it for groups that are written in C++ alone."""
        return self._name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Work:
        return self._reduce_each([one(tensors)], opts, self._team.iallreduce, all_get=True)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        return self._reduce_each(tensors, opts, self._team.iallreduce, all_get=True)

    def reduce(self, tensors: Tensors, opts: Any) -> Work:
        def post(send: Any, recv: Any, operator: str) -> Operation[Any]:
            return self._team.ireduce(send, recv, operator, opts.rootRank)

        return self._reduce_each([one(tensors)], opts, post, all_get=self._team.rank == opts.rootRank)

    def broadcast(self, tensors: Tensors, opts: Any) -> Work:
        return Work([self._team.ibcast(array_of(one(tensors)), opts.rootRank)], list(tensors), None)

    def allgather(self, out: Sequence[Tensors], given: Tensors, opts: Any = None) -> Work:
        return self._gather_all(one(out), one(given), out)

    def _allgather_base(self, out: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Work:
        return self.allgather_into_tensor_coalesced([out], [given])

    def allgather_into_tensor_coalesced(self, out: Tensors, given: Tensors, opts: Any = None) -> Work:
        for pair in zip(given, out):
            alike(*pair)
        operations = [self._team.iallgather(flat(mine), flat(all_of_them)) for mine, all_of_them in zip(given, out)]
        return Work(operations, list(out), None)

    def gather(self, out: Sequence[Tensors], given: Tensors, opts: Any) -> Work:
        mine = {opts.rootRank: array_of(one(given))}
        places = {} if self._team.rank != opts.rootRank else arrays(one(out))
        if places:
            alike(one(given), *one(out))
        return Work([self._team.iexchange(mine, places)], list(out), None)

    def scatter(self, out: Tensors, given: Sequence[Tensors], opts: Any) -> Work:
        parts = {} if self._team.rank != opts.rootRank else arrays(one(given))
        if parts:
            alike(one(out), *one(given))
        return Work([self._team.iexchange(parts, {opts.rootRank: array_of(one(out))})], list(out), None)

    def reduce_scatter(self, out: Tensors, given: Sequence[Tensors], opts: Any = None) -> Work:
        parts = one(given)
        together = torch.cat([part.reshape(-1) for part in parts])
        return self._reduce_parts([one(out)], [together], [part.numel() for part in parts], opts)

    def _reduce_scatter_base(self, out: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Work:
        return self._reduce_parts([out], [given], None, opts)

    def reduce_scatter_tensor_coalesced(self, out: Tensors, given: Tensors, opts: Any = None) -> Work:
        return self._reduce_parts(out, given, None, opts)

    def alltoall_base(
        self, out: torch.Tensor, given: torch.Tensor, out_sizes: Sequence[int], given_sizes: Sequence[int],
        opts: Any = None,
    ) -> Work:  # fmt: skip
        alike(given, out)
        counts = [self._elements(given, given_sizes), self._elements(out, out_sizes)]
        return Work([self._team.ialltoallv(flat(given), counts[0], flat(out), counts[1])], [out], None)

    def alltoall(self, out: Tensors, given: Tensors, opts: Any = None) -> Work:
        alike(*given, *out)
        return Work([self._team.iexchange(arrays(given), arrays(out))], list(out), None)

    def barrier(self, opts: Any = None) -> Work:
        return Work([self._team.ibarrier()], [], None)

    # What newer torch calls them.
    all_gather_single, all_gather_single_coalesced = _allgather_base, allgather_into_tensor_coalesced
    reduce_scatter_single, reduce_scatter_single_coalesced = _reduce_scatter_base, reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base

    def send(self, tensors: Tensors, peer: int, tag: int) -> Work:
        return Work([self._channels.send(array_of(one(tensors)), peer, tag)], list(tensors), None)

    def recv(self, tensors: Tensors, peer: int, tag: int) -> Work:
        return Work([self._channels.receive(array_of(one(tensors)), peer, tag)], list(tensors), None)

    def recv_anysource(self, tensors: Tensors, tag: int) -> Work:
        raise ArgumentError("the backend offpath receives from a rank that is named. Pass src.")

    def _reduce_each(
        self, tensors: Tensors, opts: Any, post: Callable[[Any, Any, str], Operation[Any]], all_get: bool
    ) -> Work:
        def begin(tensor: torch.Tensor) -> tuple[Operation[Any], Callable[[], None] | None]:
            reduction = Reduction(tensor, operator_of(opts), self._team.size)
            received = reduction.receive(tensor) if all_get else None
            operation = post(reduction.send, received, reduction.operator)
            return operation, None if received is None else partial(reduction.finish, tensor, received)

        return together(map(begin, tensors), tensors)

    def _reduce_parts(self, outs: Tensors, given: Tensors, counts: list[int] | None, opts: Any) -> Work:
        """Without counts: equal parts."""

        def begin(out: torch.Tensor, operand: torch.Tensor) -> tuple[Operation[Any], Callable[[], None]]:
            reduction = Reduction(operand, operator_of(opts), self._team.size)
            received = reduction.receive(out)
            operation = self._team.ireduce_scatter(
                reduction.send.reshape(-1), received.reshape(-1), counts, reduction.operator
            )
            return operation, partial(reduction.finish, out, received)

        return together(map(begin, outs, given), outs)

    def _gather_all(self, places: Tensors, mine: torch.Tensor, out: Any) -> Work:
        """Each rank's tensor has a place of its own, and perhaps a length of its own."""
        alike(mine, *places)
        mine_array = array_of(mine)
        everyone = dict.fromkeys(range(self._team.size), mine_array)
        return Work([self._team.iexchange(everyone, arrays(places))], list(out), None)

    def _elements(self, tensor: torch.Tensor, rows: Sequence[int]) -> list[int]:
        """How many elements each member's part has, of as many rows as are given, else of the same share."""
        if not rows:
            if tensor.numel() % self._team.size:
                raise ArgumentError(f"{tensor.numel()} elements cannot be dealt to {self._team.size} ranks. Pad them.")
            return [tensor.numel() // self._team.size] * self._team.size
        if sum(rows) != tensor.shape[0]:
            raise ArgumentError(f"sizes {list(rows)[:8]} are no parts of {tensor.shape[0]} rows. They add up to these.")
        row = tensor.numel() // tensor.shape[0] if tensor.numel() else 0
        return [count * row for count in rows]


def operator_of(opts: Any) -> Any:
    return torch.distributed.ReduceOp.SUM if opts is None else opts.reduceOp


def arrays(tensors: Tensors) -> dict[int, Any]:
    return {rank: array_of(tensor) for rank, tensor in enumerate(tensors)}


def register() -> None:
    """Makes torch.distributed.init_process_group("offpath") possible."""
    backend = torch.distributed.Backend
    if NAME.upper() not in vars(backend):
        devices = {"devices": "cpu"} if "devices" in inspect.signature(backend.register_backend).parameters else {}
        backend.register_backend(NAME, ProcessGroup, **devices)
