# SPDX-License-Identifier: BSD-3-Clause
"""What an executor does for offpath.torch.Validation: it gives a model of its own the weights, and evaluates it."""

from __future__ import annotations

from typing import Any

import torch

from offpath.torch.packing import unpack
from offpath.torch.placing import recall
from offpath.torch.seeding import seeded


def evaluate(what: Any, weights: Any, name: str, epoch: int, threads: int) -> Any:
    """A task. what: pickled (model, function, arguments), read by whoever does not know its name."""
    model, function, arguments = recall(name, what)
    model.load_state_dict(unpack(weights))
    torch.set_num_threads(threads)  # sums are dealt to threads, so the last digits depend on how many there are
    return run(model, function, arguments, epoch)


def run(model: torch.nn.Module, function: Any, arguments: tuple[Any, ...], epoch: int) -> Any:
    """The same here and in the program."""
    with seeded("validation", epoch), torch.no_grad():
        return function(model, *arguments)
