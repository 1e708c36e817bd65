# SPDX-License-Identifier: BSD-3-Clause
"""How long an epoch of a training takes when executors make its batches, validate, or both.

With t_b for all batches of an epoch, t_v for a validation and t_t for the rest, all on the host, and executors on
`cores` cores that take `slower` times as long:

    host  t_t + t_b + t_v
    O-DA  max(t_t, t_b * slower / cores) + the first batch + t_v
    O-MV  max(t_t + t_b, t_v * slower)
    O-Hy  max(t_t, (t_b + t_v) * slower / cores, t_v * slower) + the first batch

A validation is one task, on one core. Each batch also costs the host what a task does.
Source: Jain et al., HotI 2021 (offloading augmentation, validation, and both).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TASK_S = 0.0005  # of the host, for a task that is a Python function


@dataclass(frozen=True)
class Epoch:
    """Seconds on the host."""

    batches: int
    batches_s: float
    validation_s: float
    rest_s: float


def median_epoch(profiles: Sequence[Mapping]) -> Epoch:
    """Of what offpath.torch.profiling noted."""
    by_length = sorted(profiles, key=lambda one: one["epoch_s"])
    one = by_length[len(by_length) // 2]
    rest = one["epoch_s"] - one["batches_s"] - one["validation_s"]
    return Epoch(int(one["batches"]), one["batches_s"], one["validation_s"], max(0.0, rest))


def predict(epoch: Epoch, cores: int = 1, slower: float = 1.0) -> dict[str, float]:
    """Seconds of an epoch, for each way."""
    tasks_s = TASK_S * epoch.batches
    first_s = epoch.batches_s / max(1, epoch.batches) * slower
    batches_s, validation_s = epoch.batches_s * slower, epoch.validation_s * slower
    rest_s = epoch.rest_s + tasks_s
    return {
        "host": epoch.rest_s + epoch.batches_s + epoch.validation_s,
        "O-DA": max(rest_s, batches_s / cores) + first_s + epoch.validation_s,
        "O-MV": max(epoch.rest_s + epoch.batches_s + TASK_S, validation_s),
        "O-Hy": max(rest_s, (batches_s + validation_s) / cores, validation_s) + first_s,
    }
