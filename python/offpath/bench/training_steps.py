# SPDX-License-Identifier: BSD-3-Clause
"""Steps of `offpath bench training`, of gradients that are added up and of sharded models: tables, rows of launches."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from offpath.bench.kit import Table

SHARDED_NEEDS = "from torch.distributed.fsdp import FSDPModule; FSDPModule.set_custom_reduce_scatter"


def _table(title: str, keys: Sequence[str], parts: Sequence[str], **more: Any) -> Table:
    times = {part: f"{part}_s" for part in parts}
    times |= {"step ms": "step_s", "min": "step_min_s", "max": "step_max_s", "best": "best_s"}
    columns = [(name, lambda row, field=field: f"{1e3 * row[field]:.2f}") for name, field in times.items()]
    labels = [(key, f"{{{key}}}") for key in keys]
    return Table(title, [*labels, *columns, ("over gloo", "{gain:.2f}")], keys=len(keys), **more)


GRADIENTS = _table("A training step", ("rate", "backend"), ("compute", "exchange"))
SHARDED = _table(
    "A step of a sharded model", ("rate", "nodes", "way"), ("compute", "gather", "reduce", "exchange"), of="sharded"
)


def of_gradients(labels: Mapping, launches: Sequence[Mapping], rounding: float) -> list[dict]:
    """One for each backend."""
    buckets = max(1, launches[0]["buckets"])

    def best_s(compute: float, least: Mapping[str, float]) -> float:
        # The last bucket begins when the computation ends; the first one when a part of the way back is done.
        return max(compute + least["exchange"] / buckets, compute * (1 + 2 / buckets) / 3 + least["exchange"])

    return _rows(labels, "backend", "gradient_bytes", launches, rounding, best_s)


def of_sharded(labels: Mapping, launches: Sequence[Mapping], rounding: float) -> list[dict]:
    """One for each way."""

    def best_s(compute: float, least: Mapping[str, float]) -> float:
        # Nothing is computed while the first layer is gathered, and after the last one has its gradients.
        return max(compute + least["gather"] + least["reduce"], least["exchange"])

    return _rows(labels, "way", "model_bytes", launches, rounding, best_s)


def _rows(
    labels: Mapping, name: str, size: str, launches: Sequence[Mapping], rounding: float,
    best_s: Callable[[float, Mapping[str, float]], float],
) -> list[dict]:  # fmt: skip
    """Medians over the launches' medians, and the least and greatest of these. `best_s`: what nobody passes, of the
    median of the computation and the least that any has taken for a part."""
    medians = {
        way: {what: [statistics.median(launch["times"][way][what]) for launch in launches] for what in parts}
        for way, parts in launches[0]["times"].items()
    }
    least = {what: min(min(found[what]) for found in medians.values()) for what in medians["gloo"]}
    return [
        {
            **labels, name: way, size: launches[0][size], "runs": len(launches),
            "verified": all(launch["largest_difference"] <= rounding for launch in launches),
            **{f"{what}_s": statistics.median(each) for what, each in found.items()},
            "step_min_s": min(found["step"]), "step_max_s": max(found["step"]),
            "best_s": best_s(statistics.median(found["compute"]), least),
            "gain": statistics.median(theirs / ours for theirs, ours in zip(medians["gloo"]["step"], found["step"])),
        }
        for way, found in medians.items()
    ]  # fmt: skip
