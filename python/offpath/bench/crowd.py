# SPDX-License-Identifier: BSD-3-Clause
"""Several commands beside each other, none of which outlives us, whatever they have started themselves."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from offpath.base.errors import UserError
from offpath.lab import inventory


class Crowd:
    """Ends what it has started when it is left: by SIGTERM, and by SIGKILL what is there some seconds later."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen] = []
        self._run = uuid.uuid4().hex  # what all that they start has in its environment

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], output: Path, *, own_session: bool = True
    ) -> subprocess.Popen:
        """Output and errors go into the file `output`; in a session of its own a command has turns of its own, where
        the scheduler groups by sessions. Raises UserError when it cannot be started."""
        try:
            with output.open("wb") as file:
                child = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "TERM", *argv], env={**env, "OFFPATH_LAB_RUN": self._run},
                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=own_session,
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
        if any(child.poll() is None for child in self._children):
            inventory.end_processes(lambda: inventory.processes_of_run(self._run))
        for child in self._children:
            child.wait()
