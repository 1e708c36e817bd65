# SPDX-License-Identifier: BSD-3-Clause
"""torch.utils.data.DataLoader whose samples are made by the service's executors."""

from __future__ import annotations

import collections
import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import numpy
import torch.utils.data

from offpath.api.failures import ArgumentError, OffpathError, TaskError
from offpath.torch import batches, profiling
from offpath.torch.batches import Recipe, SampleError
from offpath.torch.groups import session
from offpath.torch.packing import Parts, unpack
from offpath.torch.placing import place
from offpath.torch.seeding import Seeded

_ROOM = 1.25  # of what the first batch needs


class DataLoader(torch.utils.data.DataLoader):  # type: ignore[type-arg]
    """Takes torch's arguments, and beside them:

    seed: of the samples' random numbers (offpath.torch.Seeded). prefetch: batches that are made ahead. on: "service",
    or "host" for this process itself, which gives the same batches. check: makes the first sample twice, and says so
    when the two differ.

    num_workers, prefetch_factor and persistent_workers are taken and do nothing: executors of the service work here.
    Every iteration is an epoch, counted from 0; `epoch` can be set. Batches are views of memory that the service maps;
    it is used again when they are gone.
    """

    def __init__(
        self, dataset: Any, *arguments: Any, seed: int = 0, prefetch: int = 4, on: str = "service", check: bool = True,
        num_workers: int = 0, prefetch_factor: Any = None, persistent_workers: bool = False, **options: Any,
    ):  # fmt: skip
        if on not in ("service", "host"):
            raise ArgumentError(f"samples cannot be made on {on!r}. Use service or host.")
        if prefetch < 1:
            raise ArgumentError(f"{prefetch} batches ahead are too few (nothing would be made beside). Use 1 or more.")
        mine = dataset if isinstance(dataset, Seeded) else Seeded(dataset, seed)
        super().__init__(mine, *arguments, num_workers=0, **options)
        self.epoch, self._prefetch, self._on, self._check = 0, prefetch, on, check
        self._placed: _Placed | None = None

    def __iter__(self) -> Iterator[Any]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        recipe = Recipe(self.dataset, self.collate_fn)
        # As torch's does, so shuffling is the same.
        torch.empty((), dtype=torch.int64).random_(generator=self.generator)
        if self._on == "host":
            profiling.begin_epoch()
            for indices in self._index_sampler:
                with profiling.batch():
                    made = recipe.make(indices, epoch)
                yield made
            return
        if self._placed is None:
            self._placed = _Placed(recipe)
        waiting: collections.deque[_Batch] = collections.deque()
        for indices in self._index_sampler:
            if self._check:
                self._check = False
                check_sample(self.dataset, indices[0] if isinstance(indices, (list, tuple)) else indices)
            waiting.append(self._placed.begin(indices, epoch))
            if len(waiting) > self._prefetch:
                yield waiting.popleft().take()
        while waiting:
            yield waiting.popleft().take()


class _Placed:
    """A recipe where executors can read it, and memory for their batches."""

    def __init__(self, recipe: Recipe):
        self.recipe, self.name, self.session = recipe, uuid.uuid4().hex, session()
        self.text = place(recipe, "the data set, or its collate_fn,")
        self.room = 0

    def begin(self, indices: Any, epoch: int) -> _Batch:
        if self.room == 0:  # so much is known when one has been made
            self.room = int(Parts(self.recipe.make(indices, epoch)).bytes * _ROOM)
        return _Batch(self, indices, epoch)


class _Batch:
    def __init__(self, placed: _Placed, indices: Any, epoch: int):
        self._placed, self._indices, self._epoch = placed, indices, epoch
        self._task: Any = None
        with contextlib.suppress(OffpathError):  # take() meets it again
            self._begin()

    def _begin(self) -> None:
        placed = self._placed
        self._memory = placed.session.empty(placed.room, numpy.uint8)
        self._task = placed.session.task(
            batches.make, placed.name, self._indices, self._epoch, inputs=[placed.text], outputs=[self._memory]
        )

    def take(self) -> Any:
        placed = self._placed
        try:
            if self._task is None:
                self._begin()
            length = self._task.wait()
            if length > len(self._memory):
                placed.room = max(placed.room, int(length * _ROOM))
                self._begin()
                self._task.wait()
        except SampleError:
            raise
        except TaskError as error:
            raise SampleError(f"{self._culprit()}: {error}") from error
        except OffpathError:  # the executors are gone; a batch is what its indices say, wherever it is made
            return placed.recipe.make(self._indices, self._epoch)
        return unpack(self._memory)

    def _culprit(self) -> str:
        """Which sample ends its executor: each by itself."""
        for index in self._indices if isinstance(self._indices, (list, tuple)) else [self._indices]:
            one = _Batch(self._placed, [index] if isinstance(self._indices, (list, tuple)) else index, self._epoch)
            try:
                if one._task is None:
                    one._begin()
                one._task.wait()
            except OffpathError:
                return f"sample {index} ends the process that makes it"
        return f"one of the samples {list(self._indices)[:20]} ends the process that makes them"


def check_sample(dataset: Seeded, index: Any) -> None:
    """Raises ArgumentError where a sample is another one when it is made again."""
    first, second = (_bytes_of(dataset[index]) for _ in range(2))
    if first != second:
        raise ArgumentError(
            f"sample {index} differs when it is made twice with the same seed (a transform keeps a state, or has "
            "random numbers of its own). Take them from random, numpy.random or torch, or pass check=False."
        )


def _bytes_of(sample: Any) -> bytes:
    parts = Parts(sample)
    out = bytearray(parts.bytes)
    parts.write(memoryview(out))
    return bytes(out)
