# SPDX-License-Identifier: BSD-3-Clause
"""What launches come to: the rows of a result."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from offpath.bench.kit.turns import Case


def of_cases(cases: Iterable[Case], spread: Sequence[str] = ()) -> list[dict]:
    """One for each case that has launches; several where a launch is a list of rows."""
    return [row for case in cases for row in of_case(case, spread)]


def of_case(case: Case, spread: Sequence[str] = ()) -> list[dict]:
    many = [each if isinstance(each, list) else [each] for each in case.launches]
    return [{**case.labels, **over_launches(same, spread)} for same in zip(*many)]


def over_launches(samples: Sequence[Mapping], spread: Sequence[str] = ()) -> dict:
    """Medians of numbers, but the least of what is called so, and the most. Of the fields in `spread` the least and the
    most, too. A row is verified if each launch says so: what nobody has looked at is not right."""
    row = {name: _over(name, [sample[name] for sample in samples]) for name in samples[0]}
    for name in spread:
        values = [sample[name] for sample in samples]
        row |= {f"{name}_min": min(values), f"{name}_max": max(values)}
    return row | {"runs": len(samples), "verified": all(sample.get("verified") for sample in samples)}


def _over(name: str, values: list) -> Any:
    if all(value == values[0] for value in values) or not all(isinstance(value, (int, float)) for value in values):
        return values[0]
    if "_min" in name:
        return min(values)
    if "_max" in name or name.startswith("longest"):
        return max(values)
    median = statistics.median(values)
    return round(median) if all(isinstance(value, int) for value in values) else median
