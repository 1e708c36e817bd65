# SPDX-License-Identifier: BSD-3-Clause
"""Put in front of services, by path (OFFPATH_SERVICE_WRAPPER): the first one of a job is killed under way.

It imports nothing of Offpath, as node_facts.py. service_strike.py FOLDER SERVICE...: the program makes FOLDER/ready
once it is under way, and goes on for a while after FOLDER/until, which is there when the service is not any more.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

PATIENCE_S = 60.0


def strike(folder: Path, service: int) -> None:
    """In a process of its own that has nothing of the service's: who holds its socket keeps it open."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    until = time.monotonic() + PATIENCE_S
    while not (folder / "ready").exists() and time.monotonic() < until:
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.kill(service, signal.SIGKILL)
        (folder / "killed").touch()
    (folder / "until").touch()


def main() -> None:
    folder, service = Path(sys.argv[1]), os.getpid()
    with contextlib.suppress(FileExistsError):
        (folder / "struck").mkdir()
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                os.setsid()
                strike(folder, service)
            os._exit(0)
        os.waitpid(child, 0)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python's own
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
