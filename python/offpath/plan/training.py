# SPDX-License-Identifier: BSD-3-Clause
"""How long an epoch of a training takes when executors make its batches, validate, or both.

With t_b for all batches of an epoch, t_v for a validation and t_t for the rest, all on the host, and executors on
`cores` cores that take `slower` times as long, behind a link on which batches take l_b and weights l_w:

    host  t_t + t_b + t_v
    O-DA  max(t_t, t_b * slower / cores, l_b) + the first batch + t_v
    O-MV  max(t_t + t_b, t_v * slower + l_w)
    O-Hy  max(t_t, (t_b + t_v) * slower / cores, t_v * slower + l_w, l_b) + the first batch

A validation is one task, on one core. Each batch also costs the host what a task does. Cores of the host have no link
before them.
Source: Jain et al., HotI 2021 (offloading augmentation, validation, and both).
"""

from __future__ import annotations

import math
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
    batches_bytes: int = 0
    weights_bytes: int = 0


def median_epoch(profiles: Sequence[Mapping]) -> Epoch:
    """Of what offpath.torch.profiling noted."""
    by_length = sorted(profiles, key=lambda one: one["epoch_s"])
    one = by_length[len(by_length) // 2]
    rest = one["epoch_s"] - one["batches_s"] - one["validation_s"]
    moved = int(one.get("batches_bytes", 0)), int(one.get("weights_bytes", 0))
    return Epoch(int(one["batches"]), one["batches_s"], one["validation_s"], max(0.0, rest), *moved)


def predict(epoch: Epoch, cores: int = 1, slower: float = 1.0, link_bits_per_s: float = math.inf) -> dict[str, float]:
    """Seconds of an epoch, for each way."""
    tasks_s = TASK_S * epoch.batches
    link_s = epoch.batches_bytes * 8 / link_bits_per_s
    first_s = (epoch.batches_s * slower + link_s) / max(1, epoch.batches)
    batches_s = epoch.batches_s * slower
    computed_s = epoch.validation_s * slower
    validation_s = computed_s + epoch.weights_bytes * 8 / link_bits_per_s
    rest_s = epoch.rest_s + tasks_s
    return {
        "host": epoch.rest_s + epoch.batches_s + epoch.validation_s,
        "O-DA": max(rest_s, batches_s / cores, link_s) + first_s + epoch.validation_s,
        "O-MV": max(epoch.rest_s + epoch.batches_s + TASK_S, validation_s),
        "O-Hy": max(rest_s, (batches_s + computed_s) / cores, validation_s, link_s) + first_s,
    }
