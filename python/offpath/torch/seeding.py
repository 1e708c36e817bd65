# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers that belong to a sample, so that it is the same wherever and whenever it is made."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.utils.data import Dataset, IterableDataset

from offpath.api.failures import ArgumentError


class Seeded(Dataset):  # type: ignore[type-arg]
    """A data set whose sample i sees random numbers of its own: of `random`, `numpy.random` and torch (on the CPU).

    They follow from seed, epoch and i alone. What else has generators of its own takes them from these. `epoch` is the
    caller's to advance (offpath.torch.DataLoader does).
    """

    def __init__(self, dataset: Any, seed: int = 0):
        if isinstance(dataset, IterableDataset):
            raise ArgumentError(
                f"{type(dataset).__name__} has no samples with numbers (they are what seeds and tasks go by). Use a "
                "data set with __getitem__ and __len__."
            )
        self.dataset, self.seed, self.epoch = dataset, seed, 0

    def __getitem__(self, index: Any) -> Any:
        with seeded(self.seed, self.epoch, index):
            return self.dataset[index]

    def __len__(self) -> int:
        return len(self.dataset)


@contextlib.contextmanager
def seeded(*names: Any) -> Iterator[None]:
    """All three generators from `names`; as they were, afterwards."""
    before = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    digest = hashlib.blake2b(repr(names).encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "little")
    random.seed(number)
    numpy.random.seed(number % 2**32)
    torch.default_generator.manual_seed(number % 2**63)
    try:
        yield
    finally:
        random.setstate(before[0])
        numpy.random.set_state(before[1])
        torch.set_rng_state(before[2])
