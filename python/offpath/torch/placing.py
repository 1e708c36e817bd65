# SPDX-License-Identifier: BSD-3-Clause
"""What tasks need again and again: pickled once into memory that executors read, and unpickled there once."""

from __future__ import annotations

import hashlib
import io
import pickle
import types
from typing import Any

from offpath.api.failures import ArgumentError

_KEPT = 3  # a training's and a validation's data, and a model
_known: dict[str, Any] = {}


def pickled(value: Any, what: str) -> bytes:
    """By cloudpickle what an executor cannot import. Raises ArgumentError where that is not there, or cannot do it
    either; `what` names the value."""
    stream = io.BytesIO()
    pickler = _Pickler(stream, protocol=4)
    try:
        pickler.dump(value)
        problem = pickler.of_main and f"{pickler.of_main} is of the main program, which executors do not import"
    except Exception as error:
        problem = f"{error}; executors are processes of their own"
    if not problem:
        return stream.getvalue()
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        advice = "Define what it holds at the top of a module, or install cloudpickle for program and executors."
    else:
        advice = "Define what it holds at the top of a module."
        try:
            return bytes(cloudpickle.dumps(value, protocol=4))
        except Exception as error:
            problem = f"{error}; executors are processes of their own"
    raise ArgumentError(f"{what} cannot be pickled ({problem}). {advice}")


def digest_of(value: Any) -> bytes | None:
    """Another one when the value has changed. None: it cannot be pickled (any more, as it has opened a file)."""
    try:
        return hashlib.blake2b(pickled(value, "a value")).digest()
    except ArgumentError:
        return None


class _Pickler(pickle.Pickler):
    """of_main: the name of something of the main program: it is pickled as a name that means nothing elsewhere."""

    of_main = ""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, types.FunctionType)) and value.__module__ == "__main__":
            self.of_main = self.of_main or value.__qualname__
        return NotImplemented


def read(text: Any) -> Any:
    """A value of its own."""
    return pickle.loads(memoryview(text))


def recall(name: str, memory: Any) -> Any:
    """For tasks: the value of that name, read where this executor does not know it."""
    if name not in _known:
        while len(_known) >= _KEPT:
            _known.pop(next(iter(_known)))
        _known[name] = read(memory)
    return _known[name]
