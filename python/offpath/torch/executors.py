# SPDX-License-Identifier: BSD-3-Clause
"""The service's executors, wherever they are. Where they cannot work for this process it is said once, by a warning,
and whoever asks them does the work itself."""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import torch

from offpath.api.failures import ArgumentError, NoMemoryError, OffpathError, ServiceLostError
from offpath.api.task import Unchanged
from offpath.torch.joining import session

PLACES = ("service", "host")
_PLACE = "OFFPATH_TORCH_ON"
_versions = itertools.count(1)  # memory may be used again for another value


def chosen_place(on: str | None, what: str) -> str:
    """`on`, else what OFFPATH_TORCH_ON says, else the service."""
    place = on or os.environ.get(_PLACE) or "service"
    if place not in PLACES:
        raise ArgumentError(f"{what} on {place!r}. Use {' or '.join(PLACES)}.")
    return place


class Executors:
    """Of one session."""

    def __init__(self) -> None:
        self._session: Any = None
        self._greeting: Any = None
        self._able = True
        try:
            self._session = session()
            if not self._session.alive:
                raise ServiceLostError("the service is lost.")
            self._greeting = self._session.task(versions)
        except OffpathError as error:
            self.give_up(error)

    @property
    def closed(self) -> bool:
        return self._session is not None and self._session.closed

    def able(self) -> bool:
        """Waits for their first word. They must have this process's versions: with others numbers differ."""
        if self._greeting is not None:
            greeting, self._greeting = self._greeting, None
            try:
                theirs, ours = greeting.wait(), versions()
            except Exception as error:  # no interpreter there, no PyTorch, or they are gone
                self.give_up(error)
            else:
                if theirs != ours:
                    self.give_up(f"they have {_said(theirs)}, and this process has {_said(ours)}.")
        return self._able

    def give_up(self, why: BaseException | str) -> None:
        if self._able:
            self._able = False
            warn(f"the service's executors cannot be used: {_words(why)} This process makes batches and validates.")

    def empty(self, count: int) -> Any:
        """Memory that they see, too; None where there is none."""
        try:
            return self._session.empty(count, numpy.uint8) if self._able else None
        except NoMemoryError:  # until the program lets go of some
            return None
        except OffpathError as error:
            self.give_up(error)
            return None

    def keep(self, text: bytes) -> Unchanged | None:
        """As an input of many tasks, which goes to another machine once."""
        memory = self.empty(len(text))
        if memory is None:
            return None
        memory[:] = numpy.frombuffer(text, numpy.uint8)
        return Unchanged(memory, next(_versions))

    def task(self, function: Callable[..., Any], *arguments: Any, **arrays: Any) -> Any:
        """None: it cannot be begun."""
        if not self._able or any(one is None for each in arrays.values() for one in each):
            return None
        try:
            return self._session.task(function, *arguments, **arrays)
        except OffpathError as error:
            self.give_up(error)
            return None


_current: Executors | None = None


def executors() -> Executors:
    global _current
    if _current is None or _current.closed:
        _current = Executors()
    return _current


def versions() -> dict[str, str]:
    """A task. Of what numbers depend on."""
    return {"Python": "{}.{}".format(*sys.version_info[:2]), "PyTorch": torch.__version__}


def warn(text: str) -> None:
    warnings.warn(f"offpath: {text}", RuntimeWarning, stacklevel=2)


def _said(found: dict[str, str]) -> str:
    return " and ".join(f"{name} {version}" for name, version in found.items())


def _words(why: BaseException | str) -> str:
    text = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
    text = (text.strip().splitlines() or ["?"])[0]
    return text if text.endswith(".") else f"{text}."
