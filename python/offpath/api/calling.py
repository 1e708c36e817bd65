# SPDX-License-Identifier: BSD-3-Clause
"""A call of a Python function as bytes: by its name where its module can be imported there, else by cloudpickle."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from offpath.api.constants import Access
from offpath.api.failures import ArgumentError
from offpath.tasks.letters import REPORT_BYTES, Call, Place

if TYPE_CHECKING:
    from offpath.api.buffers import Buffer
    from offpath.api.sharing import Report, Sharing

_START = "from offpath.tasks.worker import main; main()"


def check_callable(function: Any) -> None:
    if not callable(function):
        raise ArgumentError(
            f"a task's function is {type(function).__name__}. Pass a Python function, or the name library.so:symbol."
        )


def argument_for(
    function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any], held: Sequence[Buffer],
    access: Sequence[Access], report: Report, sharing: Sharing,
) -> bytes:  # fmt: skip
    """For frontends/python/interpreter.cpp."""
    places = []
    for buffer, one in zip(held, access):
        places.append(Place(sharing.offset_of(buffer), buffer.format, buffer.shape, bool(one & Access.OUT)))
    places.append(Place(sharing.offset_of(report.buffer), "B", (REPORT_BYTES,), True))
    call = Call(
        sharing.file, tuple(sys.path), pickled(function), _dumps((tuple(arguments), dict(options)), "an argument"),
        tuple(places),
    )  # fmt: skip
    words = b"".join(os.fsencode(word) + b"\0" for word in _command())
    mapped = bytes(place.at is not None for place in places)
    return len(words).to_bytes(4, sys.byteorder) + words + mapped + pickle.dumps(call, protocol=4)


def pickled(function: Callable[..., Any]) -> bytes:
    """Raises ArgumentError where neither way is open."""
    inner = getattr(function, "py_func", function)  # Numba's: there it is compiled anew
    of_main = getattr(inner, "__module__", "__main__") == "__main__"
    if not of_main and "<" not in getattr(inner, "__qualname__", ""):
        return _dumps(function, "the function")
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        name = getattr(inner, "__qualname__", repr(function))
        raise ArgumentError(
            f"{name} is a function of the main program, or of another function (an executor cannot import it by its "
            "name). Put it into a module, or install cloudpickle for the program and the executors."
        ) from None
    try:
        text: bytes = cloudpickle.dumps(function)
    except Exception as error:
        raise ArgumentError(f"the function cannot be pickled ({error}). Give it plain data.") from None
    return text


def _dumps(what: Any, name: str) -> bytes:
    try:
        return pickle.dumps(what, protocol=4)
    except Exception as error:
        raise ArgumentError(f"{name} cannot be pickled ({error}). Pass plain data, and arrays as inputs.") from None


def _command() -> list[str]:
    """OFFPATH_TASK_PYTHON, else the program's own interpreter; it finds our package where we are."""
    python = os.environ.get("OFFPATH_TASK_PYTHON") or sys.executable or "python3"
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [python, "-c", f"import sys; sys.path.append({folder!r}); {_START}"]
