# SPDX-License-Identifier: BSD-3-Clause
"""What tasks need again and again: pickled once into memory that executors read, and unpickled there once."""

from __future__ import annotations

import pickle
from typing import Any

import numpy

from offpath.api.failures import ArgumentError
from offpath.torch.groups import session

_KEPT = 3  # a training's and a validation's data, and a model
_known: dict[str, Any] = {}


def place(value: Any, what: str) -> Any:
    """Its memory. Raises ArgumentError for what cannot be pickled; `what` names it."""
    try:
        text = pickle.dumps(value, protocol=4)
    except Exception as error:
        raise ArgumentError(
            f"{what} cannot be pickled ({error}; executors are processes of their own). Define what it holds at the "
            "top of a module."
        ) from None
    memory = session().empty(len(text), numpy.uint8)
    memory[:] = numpy.frombuffer(text, numpy.uint8)
    return memory


def read(memory: Any) -> Any:
    """A value of its own."""
    return pickle.loads(memoryview(memory))


def recall(name: str, memory: Any) -> Any:
    """For tasks: the value of that name, read where this executor does not know it."""
    if name not in _known:
        while len(_known) >= _KEPT:
            _known.pop(next(iter(_known)))
        _known[name] = read(memory)
    return _known[name]
