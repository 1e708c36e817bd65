# SPDX-License-Identifier: BSD-3-Clause
"""The fully sharded training of `offpath bench training`: rows of its launches."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from offpath.bench.kit import Table

NEEDS = "from torch.distributed.fsdp import FSDPModule; FSDPModule.set_custom_reduce_scatter"
STEP = "offpath.torch.sharded_step"
_TIMES = ("compute", "gather", "reduce", "exchange", "step")
TABLE = Table("A step of a sharded model", [
    ("rate", "{rate}"), ("nodes", "{nodes}"), ("way", "{way}"),
    *((name, lambda row, field=field: f"{1e3 * row[field]:.2f}") for name, field in (
        ("compute", "compute_s"), ("gather", "gather_s"), ("reduce", "reduce_s"), ("exchange", "exchange_s"),
        ("step ms", "step_s"), ("min", "step_min_s"), ("max", "step_max_s"), ("best", "best_s"))),
    ("over gloo", "{gain:.2f}"),
], of="sharded", keys=3)  # fmt: skip


def rows(labels: Mapping, launches: Sequence[Mapping], rounding: float) -> list[dict]:
    """One for each way: medians over the launches' medians, and the least and greatest of these."""
    medians = {
        way: {what: [statistics.median(launch["times"][way][what]) for launch in launches] for what in _TIMES}
        for way in launches[0]["times"]
    }
    least = {what: min(min(found[what]) for found in medians.values()) for what in ("gather", "reduce", "exchange")}
    return [
        {
            **labels, "way": way, "model_bytes": launches[0]["model_bytes"], "runs": len(launches),
            "verified": all(launch["largest_difference"] <= rounding for launch in launches),
            **{f"{what}_s": statistics.median(found[what]) for what in _TIMES},
            "step_min_s": min(found["step"]), "step_max_s": max(found["step"]),
            # Nothing is computed while the first layer is gathered, and after the last one has its gradients.
            "best_s": max(
                statistics.median(found["compute"]) + least["gather"] + least["reduce"], least["exchange"]
            ),
            "gain": statistics.median(
                theirs / ours for theirs, ours in zip(medians["gloo"]["step"], found["step"])
            ),
        }
        for way, found in medians.items()
    ]  # fmt: skip
