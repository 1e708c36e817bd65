# SPDX-License-Identifier: BSD-3-Clause
"""Several commands beside each other, none of which outlives us, whatever they have started themselves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from offpath.base import proc
from offpath.base.errors import UserError
from offpath.base.processes import STOP_GRACE_S, handling

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Crowd:
    """Ends what it has started when it is left: by SIGTERM, and by SIGKILL what is there some seconds later."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen] = []

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], output: Path, *, own_session: bool = True
    ) -> subprocess.Popen:
        """Output and errors go into the file `output`; in a session of its own a command has turns of its own, where
        the scheduler groups by sessions. Raises UserError when it cannot be started."""
        try:
            with output.open("wb") as file:
                child = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "TERM", *argv], env=dict(env), stdin=subprocess.DEVNULL, stdout=file,
                    stderr=subprocess.STDOUT, start_new_session=own_session,
                )  # fmt: skip
        except OSError as error:
            raise UserError(
                f"setpriv cannot be run ({error.strerror}; it ends what we start). Install util-linux."
            ) from None
        self._children.append(child)
        return child

    def __enter__(self) -> Crowd:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        running = [child for child in self._children if child.poll() is None]
        families = {pid: began for child in running for pid, began in _family(child.pid).items()}
        for child in running:
            child.terminate()
        end = time.monotonic() + STOP_GRACE_S
        for child in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=max(0.0, end - time.monotonic()))
        for pid, began in families.items():
            if proc.began(pid) == began:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for child in running:
            child.wait()


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block as Ctrl-C does, so that nothing is left behind."""

    def end(signum: int, _frame: object) -> None:
        raise SystemExit(128 + signum)

    with handling(ENDING, end):
        yield


def _family(first: int) -> dict[int, str]:
    """A process and all below it, each with when it began: numbers are used again."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                children.setdefault(proc.parent(int(entry.name)), []).append(int(entry.name))
    found, waiting = {}, [first]
    while waiting:
        pid = waiting.pop()
        found[pid] = proc.began(pid)
        waiting += children.get(pid, [])
    return found
