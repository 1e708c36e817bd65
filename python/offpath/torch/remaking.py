# SPDX-License-Identifier: BSD-3-Clause
"""Batches that executors make, and that this process makes where they do not: a batch is what its indices say."""

from __future__ import annotations

import uuid
from typing import Any

from offpath.api.failures import OffpathError, TaskError
from offpath.torch import batches
from offpath.torch.batches import Recipe, SampleError
from offpath.torch.executors import executors, warn
from offpath.torch.packing import Parts, unpack
from offpath.torch.placing import digest_of, pickled

_MORE_BYTES = 1024  # than the first batch needs; all of it crosses the link of a DPU
_MORE = 1.25  # than one needs that was longer: others will be
_NOTHING = object()


class Placed:
    """A recipe where executors can read it. check: the first batch is made on both sides."""

    def __init__(self, recipe: Recipe, check: bool):
        self.recipe, self.name = recipe, uuid.uuid4().hex
        text = pickled(self._now(), "the data set, or its collate_fn,")
        self._digest: bytes | None = None
        self.crew = executors()
        self.text = self.crew.keep(text)
        self.room = 0
        self._check = check
        self._first: Batch | None = None
        self._stays = False

    def is_current(self) -> bool:
        """Whether executors have it as it is now: a program may change its data set between epochs. What cannot be
        pickled any more has not changed."""
        return self._stays or not self.crew.able() or digest_of(self._now()) in (None, self._digest)

    def _now(self) -> Recipe:
        self.recipe.dataset.epoch = 0  # each batch says its own
        return self.recipe

    def begin(self, indices: Any, epoch: int) -> Batch:
        if self.room:
            return Batch(self, indices, epoch)
        made = self.recipe.make(indices, epoch)  # so much room a batch needs is known then
        self.room = Parts(made).bytes + _MORE_BYTES
        self._digest = digest_of(self._now())  # by now the data set may keep what was made here
        first = Batch(self, indices, epoch, made, begun=self._check)
        if self._check:
            self._first = first
        return first

    def able(self) -> bool:
        """Whether executors make batches, as far as is known. Waits for the first one, to compare it."""
        if self._stays or not self.crew.able():
            return False
        if self._first is not None:
            first, self._first = self._first, None
            if not first.is_the_same_there():
                self.stay(
                    "they make other batches (another processor is there, or samples depend on where they are made)."
                )
        return not self._stays

    def stay(self, why: str) -> None:
        if not self._stays:
            self._stays = True
            warn(f"the service's executors cannot make batches: {why} This process makes them.")


class Batch:
    """made: what it is, where that is known already."""

    def __init__(self, placed: Placed, indices: Any, epoch: int, made: Any = _NOTHING, begun: bool = True):
        self._placed, self._indices, self._epoch, self._made = placed, indices, epoch, made
        self._memory: Any = None
        self._task: Any = None
        if begun:
            self._begin()

    def _begin(self) -> None:
        placed = self._placed
        self._memory = placed.crew.empty(placed.room)
        self._task = placed.crew.task(
            batches.make, placed.name, self._indices, self._epoch, inputs=[placed.text], outputs=[self._memory]
        )

    def take(self) -> Any:
        if self._made is not _NOTHING:
            return self._made
        placed = self._placed
        if self._task is not None and placed.able():
            try:
                made = self._fetch()
                if made is not _NOTHING:
                    return made
            except TaskError as error:
                raise SampleError(f"{self._culprit()}: {error}") from error
            except OffpathError as error:  # the executors are gone
                placed.crew.give_up(error)
            except Exception as error:
                made = self._here()  # raises the same where the sample itself is bad
                placed.stay(f"{type(error).__name__}: {error}.")
                return made
        return self._here()

    def is_the_same_there(self) -> bool:
        if self._task is None:
            return True
        try:
            theirs = self._fetch()
        except Exception:  # the next one meets it
            return True
        return theirs is _NOTHING or Parts(theirs).memory() == Parts(self._made).memory()

    def _here(self) -> Any:
        return self._placed.recipe.make(self._indices, self._epoch)

    def _fetch(self) -> Any:
        length = self._task.wait()
        if length > len(self._memory):
            self._placed.room = max(self._placed.room, int(length * _MORE))
            self._begin()
            if self._task is None:
                return _NOTHING
            self._task.wait()
        return unpack(self._memory)

    def _culprit(self) -> str:
        """Which sample ends its executor: each by itself."""
        together = isinstance(self._indices, (list, tuple))
        for index in self._indices if together else [self._indices]:
            one = Batch(self._placed, [index] if together else index, self._epoch)
            try:
                if one._task is not None:
                    one._task.wait()
            except OffpathError:
                return f"sample {index} ends the process that makes it"
        return f"one of the samples {list(self._indices)[:20]} ends the process that makes them"
