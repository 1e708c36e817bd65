# SPDX-License-Identifier: BSD-3-Clause
"""The plain way to use a slower machine, for comparison (O-N): it computes the gradients of a share of each batch.

The rest is this process's, and the two are added up as if each sample had its part; what a batch normalization sees is
its share. Source: Jain et al., HotI 2021.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import torch

from offpath.api.failures import OffpathError
from offpath.torch.batches import Recipe
from offpath.torch.executors import executors
from offpath.torch.packing import Parts, unpack
from offpath.torch.placing import pickled, recall

_ROOM = 65536  # beside the gradients


class WeakWorker:
    """loss: of (model, batch), a mean over the samples."""

    def __init__(self, model: torch.nn.Module, recipe: Recipe, loss: Callable[[torch.nn.Module, Any], torch.Tensor]):
        self._model, self._name = model, uuid.uuid4().hex
        self._own = (model, recipe, loss)
        self._crew = executors()
        self._what = self._crew.keep(pickled(self._own, "the model, the data set, or the loss"))
        self._weights: Any = None
        self._out: Any = None
        self._task: Any = None
        self._share: tuple[Any, int] = ([], 0)

    def begin(self, indices: Any, epoch: int) -> None:
        """These samples' gradients, with the weights of now."""
        parts = Parts(self._model.state_dict())
        if self._weights is None:
            self._weights, self._out = self._crew.empty(parts.bytes), self._crew.empty(parts.bytes + _ROOM)
        if self._weights is not None:
            parts.write(memoryview(self._weights))
        self._share = (indices, epoch)
        self._task = self._crew.task(
            gradients, self._name, indices, epoch, inputs=[self._what, self._weights], outputs=[self._out]
        )

    def join(self, others: int) -> float:
        """Puts them to the model's, which are means over `others` samples. Returns the mean loss of the share."""
        loss, theirs = self._take()
        count = len(self._share[0])
        for parameter, gradient in zip(self._model.parameters(), theirs):
            if gradient is not None and parameter.grad is not None:
                parameter.grad.mul_(others / (others + count)).add_(gradient, alpha=count / (others + count))
        return float(loss)

    def _take(self) -> Any:
        if self._task is not None and self._crew.able():
            try:
                self._task.wait()
                return unpack(self._out)
            except OffpathError as error:
                self._crew.give_up(error)
        return _computed(*self._own, *self._share, restored=True)


def gradients(what: Any, weights: Any, out: Any, name: str, indices: Any, epoch: int) -> None:
    """A task. what: pickled (model, recipe, loss)."""
    torch.set_num_threads(1)
    model, recipe, loss = recall(name, what)
    model.load_state_dict(unpack(weights))
    Parts(_computed(model, recipe, loss, indices, epoch)).write(memoryview(out))


def _computed(
    model: torch.nn.Module, recipe: Recipe, loss: Any, indices: Any, epoch: int, restored: bool = False
) -> tuple[float, list[torch.Tensor | None]]:
    """restored: the model's own gradients and buffers are as before."""
    parameters, buffers = list(model.parameters()), list(model.buffers())
    before = [parameter.grad for parameter in parameters]
    kept = [buffer.clone() for buffer in buffers] if restored else []
    for parameter in parameters:
        parameter.grad = None
    model.train()
    value = loss(model, recipe.make(indices, epoch))
    value.backward()  # type: ignore[no-untyped-call, unused-ignore]
    found = [parameter.grad for parameter in parameters]
    for parameter, gradient in zip(parameters, before):
        parameter.grad = gradient
    for buffer, value_before in zip(buffers, kept):
        buffer.copy_(value_before)
    return value.item(), found
