# SPDX-License-Identifier: BSD-3-Clause
"""torch.utils.data.DataLoader whose samples are made by the service's executors."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import torch.utils.data

from offpath.api.failures import ArgumentError
from offpath.torch import profiling
from offpath.torch.batches import Recipe
from offpath.torch.executors import chosen_place
from offpath.torch.packing import Parts
from offpath.torch.remaking import Batch, Placed
from offpath.torch.seeding import Seeded


class DataLoader(torch.utils.data.DataLoader):  # type: ignore[type-arg]
    """Takes torch's arguments, and beside them:

    seed: of the samples' random numbers (offpath.torch.Seeded). prefetch: batches that are made ahead. on: "service",
    or "host" for this process itself, which gives the same batches; OFFPATH_TORCH_ON is the default. check: makes the
    first sample twice and the first batch here and there, and says so when the two differ.

    num_workers, prefetch_factor and persistent_workers are taken and do nothing: executors of the service work here.
    Every iteration is an epoch, counted from 0; `epoch` can be set. Batches are views of memory that the service maps;
    it is used again when they are gone.
    """

    def __init__(
        self, dataset: Any, *arguments: Any, seed: int = 0, prefetch: int = 4, on: str | None = None,
        check: bool = True, num_workers: int = 0, prefetch_factor: Any = None, persistent_workers: bool = False,
        **options: Any,
    ):  # fmt: skip
        place = chosen_place(on, "samples cannot be made")
        if prefetch < 1:
            raise ArgumentError(f"{prefetch} batches ahead are too few (nothing would be made beside). Use 1 or more.")
        self._seeded = dataset if isinstance(dataset, Seeded) else Seeded(dataset, seed)
        super().__init__(dataset, *arguments, num_workers=0, **options)
        self.epoch, self._prefetch, self._on, self._check = 0, prefetch, place, check
        self._placed: Placed | None = None

    def __iter__(self) -> Iterator[Any]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        recipe = Recipe(self._seeded, self.collate_fn)
        # As torch's does, so shuffling is the same.
        torch.empty((), dtype=torch.int64).random_(generator=self.generator)
        if self._on == "host":
            profiling.begin_epoch()
            for indices in self._index_sampler:
                with profiling.batch():
                    made = recipe.make(indices, epoch)
                profiling.moved("batches_bytes", lambda made=made: Parts(made).bytes)
                yield made
            return
        if self._placed is None or not self._placed.is_current():
            self._placed = Placed(recipe, self._check)
        waiting: collections.deque[Batch] = collections.deque()
        for indices in self._index_sampler:
            if self._check:
                self._check = False
                check_sample(self._seeded, indices[0] if isinstance(indices, (list, tuple)) else indices)
            waiting.append(self._placed.begin(indices, epoch))
            if len(waiting) > self._prefetch:
                yield waiting.popleft().take()
        while waiting:
            yield waiting.popleft().take()


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
