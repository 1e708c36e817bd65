# SPDX-License-Identifier: BSD-3-Clause
"""For programs that stop in the middle until something is done to their services: tests/interpose/programs/lost.c."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from offpath.base.paths import paths


@contextlib.contextmanager
def meanwhile(folder: Path, act: Callable[[], None]) -> Iterator[dict[str, str]]:
    """The variables by which such a program says that it is ready, then goes on after act()."""
    ready, go, stop = folder / "ready", folder / "go", threading.Event()

    def wait_and_act() -> None:
        while not ready.exists():
            if stop.is_set():
                return
            time.sleep(0.01)
        act()
        go.touch()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield {"LOST_READY": str(ready), "LOST_GO": str(go)}
    finally:
        stop.set()
        thread.join()


def stop(process: int) -> None:
    """Returns when all its threads stand still: the signal is only on its way when it was sent."""
    os.kill(process, signal.SIGSTOP)
    threads = Path(f"/proc/{process}/task")
    while any(stat.read_text().rpartition(")")[2].split()[0] != "T" for stat in threads.glob("*/stat")):
        time.sleep(0.001)


def services_in(folder: Path) -> list[int]:
    """Services and agents whose sockets are in that runtime folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_text().split("\0")
            if "--socket-path" in words and words[words.index("--socket-path") + 1].startswith(f"{folder}/"):
                found.append(int(file.parent.name))
    return found


def services(folder: Path) -> list[int]:
    """Of the program that meanwhile(folder) is about."""
    mark = f"LOST_READY={folder / 'ready'}".encode()
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            ours = entry.isdigit() and {str(paths().service), "--listen-fd"} <= set(
                Path(f"/proc/{entry}/cmdline").read_text().split("\0")
            )
            if ours and mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                found.append(int(entry))
    return found
