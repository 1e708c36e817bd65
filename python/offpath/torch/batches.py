# SPDX-License-Identifier: BSD-3-Clause
"""What an executor does for offpath.torch.DataLoader: it makes a batch, and writes it where the program can see it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from offpath.torch.packing import Parts
from offpath.torch.placing import recall
from offpath.torch.seeding import Seeded, seeded


class Recipe(NamedTuple):
    """How indices become a batch."""

    dataset: Seeded
    collate: Any

    def make(self, indices: Any, epoch: int) -> Any:
        """What collate draws belongs to the batch, as what a sample draws does to the sample."""
        self.dataset.epoch = epoch
        together = isinstance(indices, (list, tuple))
        made = [self._sample(index) for index in indices] if together else self._sample(indices)
        with seeded(self.dataset.seed, epoch, "batch", tuple(indices) if together else indices):
            return self.collate(made)

    def _sample(self, index: Any) -> Any:
        try:
            return self.dataset[index]
        except Exception as error:
            raise SampleError(f"sample {index}: {type(error).__name__}: {error}", index) from error


class SampleError(RuntimeError):
    """A sample that cannot be made; `index` is its number."""

    def __init__(self, text: str, index: Any = None):
        super().__init__(text, index)
        self.index = index

    def __str__(self) -> str:
        return str(self.args[0])


def make(recipe: Any, out: Any, name: str, indices: Any, epoch: int) -> int:
    """A task. recipe: pickled, read by whoever does not know its name. Returns how many bytes the batch has; where that
    is more than `out` has, nothing was written."""
    torch.set_num_threads(1)  # a validation here before may have had more
    parts = Parts(recall(name, recipe).make(indices, epoch))
    if parts.bytes <= len(out):
        parts.write(memoryview(out))
    return parts.bytes
