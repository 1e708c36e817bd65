# SPDX-License-Identifier: BSD-3-Clause
"""Epochs of one training, with its batches and validations made here and there, in turns (`offpath bench training`).

Prints one line of JSON: for each way the seconds and processor seconds of its epochs, and the losses.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterable
from typing import Any

import torch

from offpath.torch import profiling
from offpath.torch.examples import MODELS, SHAPES, Pictures, wrong_ones
from offpath.torch.loader import DataLoader
from offpath.torch.seeding import Seeded
from offpath.torch.validation import Validation

# Where a way makes batches, and where it validates.
WAYS = {
    "host": ("host", "host"), "workers": ("workers", "host"), "O-DA": ("service", "host"), "O-MV": ("host", "service"),
    "O-Hy": ("service", "service"),
}  # fmt: skip


class Training:
    def __init__(self, way: str, options: argparse.Namespace, effort: int, spare: set[int]):
        torch.manual_seed(1)
        pictures = Pictures(options.pictures, options.shape, effort)
        self.model = MODELS[options.model](SHAPES[options.shape][2])
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.loader = _loader(WAYS[way][0], pictures, options.batch, spare)
        self.validation = Validation(
            self.model, wrong_ones, Pictures(options.validated, options.shape, 0), on=WAYS[way][1]
        )
        self.losses: list[float] = []

    def epoch(self, batches: Iterable[Any] | None = None) -> None:
        self.model.train()
        for pictures, labels in self.loader if batches is None else batches:
            self._optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(self.model(pictures), labels)
            loss.backward()
            self._optimizer.step()
            self.losses.append(loss.item())


def _loader(where: str, pictures: Pictures, batch: int, spare: set[int]) -> Any:
    if where != "workers":
        return DataLoader(pictures, batch, on=where, check=False)

    def bind(_: int) -> None:
        os.sched_setaffinity(0, spare)
        torch.set_num_threads(1)

    return torch.utils.data.DataLoader(
        Seeded(pictures), batch, num_workers=len(spare), worker_init_fn=bind, persistent_workers=True
    )


def timed(training: Training) -> tuple[float, float]:
    """Of an epoch with its validation: the wall clock, and what of it this process computed."""
    begin, cpu = time.perf_counter(), time.process_time()
    training.loader.epoch = 0  # torch's workers that stay do not hear of others
    training.epoch()
    training.validation.begin()
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
        costs.append((time.perf_counter() - begin) / 64 * options.pictures)
    wanted = computing * share / (1 - share)
    return max(1, round(1 + (wanted - costs[0]) / ((costs[1] - costs[0]) / 10)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="resnet20")
    parser.add_argument("--shape", choices=SHAPES, default="cifar10")
    parser.add_argument("--pictures", type=int, default=256)
    parser.add_argument("--validated", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--share", type=float, default=0.12)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    mine, *others = sorted(os.sched_getaffinity(0))
    spare = {others[0] if others else mine}
    os.environ["OFFPATH_SERVICE_CORES"] = str(min(spare))
    os.environ.setdefault("OFFPATH_TASK_EXECUTORS", "1")
    os.sched_setaffinity(0, {mine})
    effort = effort_for(options.share, options, spare)
    trainings = {way: Training(way, options, effort, spare) for way in WAYS}
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for _ in range(1 + options.epochs):
        for way, training in trainings.items():
            found[way].append(timed(training))
    results = {way: training.validation.finish() for way, training in trainings.items()}
    print(json.dumps({
        "effort": effort, "profile": profiling.epochs(), "samples": options.pictures,
        "epochs": {way: [wall for wall, _ in times[1:]] for way, times in found.items()},
        "host_cpu": {way: statistics.median(cpu / wall for wall, cpu in times[1:]) for way, times in found.items()},
        "same": all(
            training.losses == trainings["host"].losses and results[way] == results["host"]
            for way, training in trainings.items()
        ),
    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
