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
from offpath.tasks.letters import REPORT_BYTES, Call, Place, version

if TYPE_CHECKING:
    from offpath.api.buffers import Buffer
    from offpath.api.sharing import Report, Sharing

# What it says where it cannot begin is frontends/python/python.cpp's kNotCalled.
_START = """
import sys
sys.path.append({folder!r})
try:
    from offpath.tasks.worker import main
except Exception as error:
    import os, struct
    text = "the executor's Python %s (%d.%d) has no working package offpath: %s. Install it there, or "
    text += "name another Python by OFFPATH_TASK_PYTHON there"
    text = (text % (sys.executable, *sys.version_info[:2], error)).encode()[:250]
    os.write(3, struct.pack("=iI", 5, len(text)) + text)
    raise SystemExit(5)
main()
"""


_NUMBERS = frozenset("bBhHiIlLqQfd?")  # that memoryview and NumPy have under the same letters


def _format_of(buffer: Buffer) -> str | bytes:
    """For worker.array_of."""
    if buffer.format.lstrip("@=<>!") in _NUMBERS:
        return buffer.format
    try:
        import numpy

        kind = numpy.asarray(buffer.owner).dtype
    except (ImportError, ValueError, TypeError, RuntimeError) as error:
        raise ArgumentError(
            f"elements of format {buffer.format!r} cannot be named to an executor ({error}). Pass a NumPy array, or "
            "bytes."
        ) from None
    if kind.hasobject:
        raise ArgumentError(
            "an array of Python objects cannot be passed (their memory is the program's). Pass numbers."
        )
    return pickle.dumps(kind, protocol=4)


def check_callable(function: Any) -> None:
    if not callable(function):
        raise ArgumentError(
            f"a task's function is {type(function).__name__}. Pass a Python function, or the name library.so:symbol."
        )


def argument_for(
    function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any], held: Sequence[Buffer],
    access: Sequence[Access], report: Report, sharing: Sharing,
) -> bytes:  # fmt: skip
    """For frontends/python/python.cpp."""
    places = []
    for buffer, one in zip(held, access):
        places.append(Place(sharing.offset_of(buffer), _format_of(buffer), buffer.shape, bool(one & Access.OUT)))
    places.append(Place(sharing.offset_of(report.buffer), "B", (REPORT_BYTES,), True))
    text, is_code = pickled(function)
    call = Call(
        sharing.file, _folders(), text, _dumps((tuple(arguments), dict(options)), "an argument"), tuple(places),
        version() if is_code else "",
    )  # fmt: skip
    words = b"".join(os.fsencode(word) + b"\0" for word in _command())
    mapped = bytes(place.at is not None for place in places)
    return len(words).to_bytes(4, sys.byteorder) + words + mapped + pickle.dumps(call, protocol=4)


def _folders() -> tuple[str, ...]:
    """Where this program finds modules; the executor's own folder is another one."""
    try:
        return tuple(os.path.abspath(folder) for folder in map(os.fspath, sys.path))
    except FileNotFoundError:  # the program's folder is gone
        return tuple(folder for folder in map(os.fspath, sys.path) if os.path.isabs(folder))


def pickled(function: Callable[..., Any]) -> tuple[bytes, bool]:
    """And whether that is its code, not its name. Raises ArgumentError where neither way is open."""
    inner = getattr(function, "py_func", function)  # Numba's: there it is compiled anew
    of_main = getattr(inner, "__module__", "__main__") == "__main__"
    if not of_main and "<" not in getattr(inner, "__qualname__", ""):
        return _dumps(function, "the function"), False
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
    return text, True


def _dumps(what: Any, name: str) -> bytes:
    try:
        return pickle.dumps(what, protocol=4)
    except Exception as error:
        raise ArgumentError(f"{name} cannot be pickled ({error}). Pass plain data, and arrays as inputs.") from None


def _command() -> list[str]:
    """OFFPATH_TASK_PYTHON, else the program's own interpreter; it finds our package where we are."""
    python = os.environ.get("OFFPATH_TASK_PYTHON") or sys.executable or "python3"
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [python, "-c", _START.format(folder=folder)]
