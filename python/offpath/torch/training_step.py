# SPDX-License-Identifier: BSD-3-Clause
"""A rank of `offpath bench training`: steps of one model whose gradients different backends add up, in turns.

Rank 0 prints one line of JSON: times of each backend in seconds, one for each round.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import offpath.torch

WARMUP = 4
_TIMEOUT = timedelta(seconds=300)


def model_of(layers: int, width: int) -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers)))


class Steps:
    """What is measured, with one backend's group."""

    def __init__(self, group: Any, layers: int, width: int, bucket_mb: float):
        self.group = group
        self.model = DistributedDataParallel(model_of(layers, width), process_group=group, bucket_cap_mb=bucket_mb)
        self.gradients = [torch.zeros(width * width) for _ in range(layers)]

    def compute(self, batch: torch.Tensor) -> None:
        """A step without communication."""
        with self.model.no_sync():
            self.step(batch)

    def step(self, batch: torch.Tensor) -> None:
        self.model.zero_grad(set_to_none=False)
        self.model(batch).square().mean().backward()

    def fill(self, turn: int) -> None:
        for index, part in enumerate(self.gradients):
            part.fill_((turn + 1) * (dist.get_rank() + 1) + index)

    def largest_error(self, turn: int) -> float:
        """Of the sums of what fill() wrote: whole numbers, so that none is allowed."""
        size = dist.get_world_size()
        sums = [(turn + 1) * size * (size + 1) / 2 + size * index for index in range(len(self.gradients))]
        return largest_of(part - sum_ for part, sum_ in zip(self.gradients, sums))

    def exchange(self, _: torch.Tensor) -> None:
        """The gradients alone."""
        for work in [dist.all_reduce(part, group=self.group, async_op=True) for part in self.gradients]:
            work.wait()


def timed(call: Callable[[torch.Tensor], None], batch: torch.Tensor) -> float:
    dist.barrier()
    begin = time.perf_counter()
    call(batch)
    return time.perf_counter() - begin


def share_of(steps: Steps, share: float, width: int) -> torch.Tensor:
    """A batch of a length with which the exchange takes `share` of exchange and computation together."""
    rows, generator = 64, torch.Generator().manual_seed(dist.get_rank())
    for _ in range(4):
        batch = torch.randn(rows, width, generator=generator)
        computing = statistics.median(timed(steps.compute, batch) for _ in range(5))
        exchanging = statistics.median(timed(steps.exchange, batch) for _ in range(3))
        wanted = torch.tensor(rows * exchanging * (1 / share - 1) / computing)
        dist.all_reduce(wanted, dist.ReduceOp.MAX)
        rows = max(1, int(wanted))
    return torch.randn(rows, width, generator=generator)


def begin(**more: float) -> tuple[argparse.Namespace, dict[str, Any]]:
    """What a rank was told, by options of which `more` has some with their usual values; and the groups to compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--share", type=float, default=0.4)
    parser.add_argument("--rounds", type=int, default=10)
    for name, usual in more.items():
        parser.add_argument("--" + name.replace("_", "-"), type=float, default=usual)
    options = parser.parse_args()
    torch.set_num_threads(1)
    offpath.torch.init_process_group(timeout=_TIMEOUT)
    return options, {"gloo": dist.new_group(backend="gloo"), "offpath": dist.group.WORLD}


def end(result: Mapping[str, Any]) -> None:
    """Rank 0 says what was found; all leave together."""
    if dist.get_rank() == 0:
        print(json.dumps({**result, "ranks": dist.get_world_size(), "cores": len(os.sched_getaffinity(0))}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    options, groups = begin(bucket_mb=1.0)
    peers = {name: Steps(group, options.layers, options.width, options.bucket_mb) for name, group in groups.items()}
    batch = share_of(peers["gloo"], options.share, options.width)
    times: dict[str, dict[str, list[float]]] = {name: {"compute": [], "exchange": [], "step": []} for name in peers}
    errors: list[float] = []
    for turn in range(WARMUP + options.rounds):
        fresh = batch * (1 + turn / 4)  # old gradients are wrong ones
        for name, steps in peers.items():
            steps.fill(turn)
            for what, found in times[name].items():
                seconds = timed(getattr(steps, what), fresh)
                if turn >= WARMUP:
                    found.append(seconds)
        errors.append(difference(*map(gradients_of, peers.values())))
        errors += (each.largest_error(turn) for each in peers.values())
    end({
        "gradient_bytes": options.layers * options.width**2 * 4, "rows": len(batch),
        "buckets": math.ceil(options.layers * options.width**2 * 4 / (options.bucket_mb * 2**20)),
        "largest_difference": largest_of_all(errors), "times": times,
    })  # fmt: skip


def difference(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> float:
    """The largest one of a number, of the largest number."""
    return largest_of(a - b for a, b in zip(ours, theirs)) / largest_of(theirs)


def largest_of(tensors: Iterable[torch.Tensor]) -> float:
    """NaN where one is: Python's max() would let a later one go."""
    return float(torch.stack([each.abs().max() for each in tensors]).max())


def largest_of_all(errors: Sequence[float]) -> float:
    """Over all ranks; infinite where one is no number."""
    largest = torch.tensor(errors).nan_to_num(nan=math.inf, posinf=math.inf).max()
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    return float(largest)


def gradients_of(steps: Steps) -> list[torch.Tensor]:
    return [parameter.grad for parameter in steps.model.parameters() if parameter.grad is not None]


if __name__ == "__main__":
    main()
