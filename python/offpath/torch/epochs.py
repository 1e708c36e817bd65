# SPDX-License-Identifier: BSD-3-Clause
"""Epochs of one training, with its batches and validations made here and there, in turns (`offpath bench training`).

One process, or a rank of several whose gradients are added up. Rank 0 prints one line of JSON: for each way the seconds
and processor seconds of its epochs, and whether the numbers are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import offpath.torch
from offpath.torch import profiling
from offpath.torch.batches import Recipe
from offpath.torch.examples import MODELS, SHAPES, Pictures, wrong_ones
from offpath.torch.loader import DataLoader
from offpath.torch.seeding import Seeded
from offpath.torch.validation import Validation
from offpath.torch.weak import WeakWorker

# Where a way makes batches, and where it validates.
WAYS = {
    "host": ("host", "host"), "workers": ("workers", "host"), "O-N": ("host", "host"), "O-DA": ("service", "host"),
    "O-MV": ("host", "service"), "O-Hy": ("service", "service"),
}  # fmt: skip


def loss_of(model: torch.nn.Module, batch: Any) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])


class Training:
    def __init__(self, way: str, options: argparse.Namespace, effort: int, spare: set[int]):
        torch.manual_seed(1)
        self.options, ranks = options, dist.get_world_size() if dist.is_initialized() else 1
        pictures = Pictures(options.pictures, options.shape, effort)
        self.model = MODELS[options.model](SHAPES[options.shape][2])
        self._learner: Any = DistributedDataParallel(self.model) if ranks > 1 else self.model
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self._seeded = Seeded(pictures)
        self._order = _order(pictures)
        self.loader = _loader(WAYS[way][0], pictures, self._order, options.batch, spare)
        self.validation = Validation(
            self.model, wrong_ones, Pictures(options.validated // ranks, options.shape, 0), on=WAYS[way][1]
        )
        self._worker: WeakWorker | None = None
        if way == "O-N":
            self._worker = WeakWorker(self.model, Recipe(self._seeded, torch.utils.data.default_collate), loss_of)
        self.losses: list[float] = []

    def epoch(self, batches: Iterable[Any] | None = None) -> None:
        self.model.train()
        if self._worker is not None:
            self._shared_epoch(self._worker)
            return
        for batch in self.loader if batches is None else batches:
            self._optimizer.zero_grad()
            loss = loss_of(self._learner, batch)
            loss.backward()
            self._optimizer.step()
            self.losses.append(loss.item())

    def _shared_epoch(self, worker: WeakWorker) -> None:
        """The last samples of each batch are the worker's. (Of several ranks each adds its own to the sum.)"""
        recipe = Recipe(self._seeded, torch.utils.data.default_collate)
        order = list(self._order)
        for begin in range(0, len(order), self.options.batch):
            indices = order[begin : begin + self.options.batch]
            own = max(1, len(indices) - round(len(indices) * self.options.weak_share))
            self._optimizer.zero_grad()
            if own < len(indices):
                worker.begin(indices[own:], 0)
            loss = loss_of(self.model, recipe.make(indices[:own], 0))
            loss.backward()
            self.losses.append(loss.item())
            if own < len(indices):
                worker.join(own)
            if dist.is_initialized():
                for parameter in self.model.parameters():
                    dist.all_reduce(parameter.grad)
                    parameter.grad.div_(dist.get_world_size())
            self._optimizer.step()


def _order(pictures: Pictures) -> Any:
    if not dist.is_initialized():
        return range(len(pictures))
    return torch.utils.data.DistributedSampler(pictures, shuffle=False)


def _loader(where: str, pictures: Pictures, order: Any, batch: int, spare: set[int]) -> Any:
    if where != "workers":
        return DataLoader(pictures, batch, sampler=order, on=where, check=False)

    def bind(_: int) -> None:
        os.sched_setaffinity(0, spare)
        torch.set_num_threads(1)

    return torch.utils.data.DataLoader(
        Seeded(pictures), batch, sampler=order, num_workers=len(spare), worker_init_fn=bind, persistent_workers=True
    )


def timed(training: Training) -> tuple[float, float]:
    """Of an epoch with its validation: the wall clock, and what of it this process computed."""
    if dist.is_initialized():
        dist.barrier()
    begin, cpu = time.perf_counter(), time.process_time()
    training.loader.epoch = 0  # torch's workers that stay do not hear of others
    training.epoch()
    training.validation.begin()
    if dist.is_initialized():
        dist.barrier()
    return time.perf_counter() - begin, time.process_time() - cpu


def effort_for(share: float, options: argparse.Namespace, spare: set[int]) -> int:
    """How often samples have to be changed to take this share of an epoch."""
    training = Training("host", options, 1, spare)
    made = list(training.loader)
    begin = time.perf_counter()
    training.epoch(made)
    computing = time.perf_counter() - begin
    costs = []
    for effort in (1, 11):
        samples = Pictures(64, options.shape, effort)
        begin = time.perf_counter()
        for index in range(64):
            samples[index]
        costs.append((time.perf_counter() - begin) / 64 * len(training.loader) * options.batch)
    wanted = torch.tensor(computing * share / (1 - share))
    effort = 1 + (wanted - costs[0]) / ((costs[1] - costs[0]) / 10)
    if dist.is_initialized():
        dist.all_reduce(effort, dist.ReduceOp.MAX)
    return max(1, round(float(effort)))


def place(cores: str) -> set[int]:
    """Binds this process to the first core of "0:1"; the second is what torch's workers and the service may use."""
    if cores:
        mine, _, other = cores.partition(":")
        os.sched_setaffinity(0, {int(mine)})
        return {int(other or mine)}
    mine_first, *others = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {mine_first})
    return {others[0] if others else mine_first}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="resnet20")
    parser.add_argument("--shape", choices=SHAPES, default="cifar10")
    parser.add_argument("--pictures", type=int, default=256)
    parser.add_argument("--validated", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--share", type=float, default=0.12)
    parser.add_argument("--weak-share", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--cores", default="")
    parser.add_argument("--several", action="store_true")
    parser.add_argument("--service-elsewhere", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    spare = place(options.cores)
    if not options.service_elsewhere:
        os.environ["OFFPATH_SERVICE_CORES"] = str(min(spare))
    os.environ.setdefault("OFFPATH_TASK_EXECUTORS", "2")  # a validation must not stand in the way of batches
    if options.several:
        offpath.torch.init_process_group()
    effort = effort_for(options.share, options, spare)
    trainings = {way: Training(way, options, effort, spare) for way in WAYS}
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    profiles: list[dict[str, Any]] = []
    warnings.simplefilter("error", RuntimeWarning)  # what is made in place after all would be measured as made there
    for _ in range(1 + options.epochs):
        for way, training in trainings.items():
            found[way].append(timed(training))
            if way == "host":
                profiles.append(profiling.last())
    results = {way: training.validation.finish() for way, training in trainings.items()}
    same = all(
        training.losses == trainings["host"].losses and results[way] == results["host"]
        for way, training in trainings.items() if way != "O-N"
    )  # fmt: skip
    if dist.is_initialized():
        agreed = torch.tensor(same)
        dist.all_reduce(agreed, dist.ReduceOp.MIN)
        same = bool(agreed)
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(json.dumps({
            "effort": effort, "profile": profiles[1:], "samples": options.pictures,
            "epochs": {way: [wall for wall, _ in times[1:]] for way, times in found.items()},
            "host_cpu": {way: statistics.median(cpu / wall for wall, cpu in times[1:]) for way, times in found.items()},
            "verified": same,
            "last_losses": {way: statistics.mean(training.losses[-8:]) for way, training in trainings.items()},
        }), flush=True)  # fmt: skip
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
