# SPDX-License-Identifier: BSD-3-Clause
"""Validation of a snapshot of the weights, by an executor of the service, while the next epoch trains."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from offpath.api.failures import OffpathError, TaskError
from offpath.torch import evaluating, profiling
from offpath.torch.executors import Executors, chosen_place, executors, warn
from offpath.torch.packing import Parts, unpack
from offpath.torch.placing import digest_of, pickled, read


class Result(NamedTuple):
    """What `function` returned for the weights of an epoch. weights: their state_dict, while the callbacks run."""

    epoch: int
    value: Any
    weights: Any


class Validation:
    """function(model, *arguments) is called with a copy of the model; what it returns is a result.

    Each begin() takes a snapshot of the weights and returns when the one before is validated: results come one epoch
    late. They are what the function returns in place. on_result: called with each result, in order. on: "service", or
    "host" for this process, which waits; OFFPATH_TORCH_ON is the default.

    `stop` is True once a callback has returned True.
    """

    def __init__(
        self, model: torch.nn.Module, function: Callable[..., Any], *arguments: Any,
        on_result: Sequence[Callable[[Result], Any]] = (), on: str | None = None,
    ):  # fmt: skip
        self.results: list[Any] = []
        self.stop = False
        self._model, self._function, self._arguments = model, function, arguments
        self._callbacks, self._on = list(on_result), chosen_place(on, "a validation cannot run")
        self._epoch = 0
        self._name = ""
        self._text = b""
        self._digest: bytes | None = None
        self._crew: Executors | None = None
        self._what: Any = None
        self._memory: list[Any] = [None, None]
        self._stays = False
        self._pending: tuple[int, Any, Any] | None = None

    def begin(self) -> None:
        epoch, self._epoch = self._epoch, self._epoch + 1
        if self._on == "host":
            profiling.moved("weights_bytes", lambda: Parts(self._model.state_dict()).bytes)
            with profiling.validation():
                value = evaluating.run(self._model, self._function, self._arguments, epoch)
            self._tell(Result(epoch, value, self._model.state_dict()))
            return
        self._crew = self._crew or executors()
        weights = self._snapshot(self._crew, epoch)
        self._take()
        self._place(self._crew)
        task = None
        if not self._stays:
            task = self._crew.task(
                evaluating.evaluate, self._name, epoch, torch.get_num_threads(), inputs=[self._what, weights]
            )
        self._pending = (epoch, task, weights)

    def _place(self, crew: Executors) -> None:
        """Gives executors what they need, and again where the program has changed the arguments. What cannot be pickled
        any more has not changed."""
        called = (self._function, self._arguments)
        found = digest_of(called)
        if self._text and found in (None, self._digest):
            return
        self._text = pickled((self._model, *called), "the model, the function, or an argument")
        self._digest, self._name, self._what = found, uuid.uuid4().hex, crew.keep(self._text)

    def finish(self) -> list[Any]:
        """All results, the last one too."""
        self._take()
        return self.results

    def _take(self) -> None:
        if self._pending is None:
            return
        (epoch, task, weights), self._pending = self._pending, None
        self._tell(Result(epoch, self._value(epoch, task, weights), unpack(weights)))

    def _value(self, epoch: int, task: Any, weights: Any) -> Any:
        assert self._crew is not None
        if task is not None and self._crew.able():
            try:
                return task.wait()
            except TaskError:  # it ends the process that does it
                raise
            except OffpathError as error:  # the executors are gone; the snapshot is here
                self._crew.give_up(error)
            except Exception as error:
                value = self._here(epoch, weights)  # raises the same where the function itself fails
                self._stays = True
                warn(f"the service's executors cannot validate: {type(error).__name__}: {error}. This process does it.")
                return value
        return self._here(epoch, weights)

    def _here(self, epoch: int, weights: Any) -> Any:
        model, function, arguments = read(self._text)
        model.load_state_dict(unpack(weights))
        return evaluating.run(model, function, arguments, epoch)

    def _tell(self, result: Result) -> None:
        self.results.append(result.value)
        for callback in self._callbacks:
            self.stop = bool(callback(result)) or self.stop

    def _snapshot(self, crew: Executors, epoch: int) -> Any:
        """Two places take turns: the one before may still be read."""
        parts = Parts(self._model.state_dict())
        memory = self._memory[epoch % 2]
        if memory is None or len(memory) < parts.bytes:
            memory = crew.empty(parts.bytes)
            memory = bytearray(parts.bytes) if memory is None else memory
            self._memory[epoch % 2] = memory
        parts.write(memoryview(memory))
        return memory


class _Best:
    """The least number of the results so far, or the largest, with its sign changed."""

    def __init__(self, of: Any, largest: bool):
        self._of, self._sign, self.best = of, -1 if largest else 1, math.inf

    def _is_better(self, result: Result) -> bool:
        number = self._sign * float(result.value if self._of is None else result.value[self._of])
        better = number < self.best  # never, if it is no number
        self.best = number if better else self.best
        return better


class EarlyStopping(_Best):
    """Stops after `patience` results in a row that are no better than the best; better is less, or more with
    `largest`. `of`: the number of a result (a key of a dict, a place in a tuple)."""

    def __init__(self, patience: int, of: Any = None, largest: bool = False):
        super().__init__(of, largest)
        self._patience, self._worse = patience, 0

    def __call__(self, result: Result) -> bool:
        self._worse = 0 if self._is_better(result) else self._worse + 1
        return self._worse >= self._patience


class BestCheckpoint(_Best):
    """Saves the weights of the best epoch so far to a file, as torch.save does."""

    def __init__(self, path: Any, of: Any = None, largest: bool = False):
        super().__init__(of, largest)
        self._path = path

    def __call__(self, result: Result) -> None:
        if self._is_better(result):
            torch.save({name: value.clone() for name, value in result.weights.items()}, self._path)
