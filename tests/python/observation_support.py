# SPDX-License-Identifier: BSD-3-Clause
"""A service that only publishes what a test gives it."""

import contextlib
import fcntl
import os
import socket
import struct
import threading
import time
from pathlib import Path

from offpath.telemetry import observation as layout

ADD_SEALS, SEAL_SHRINK = 1033, 2
MOST = 4  # client records of a page


def page(clients=(), *, generation=2, cpu_ns=0, sent=0, received=0, clients_count=None, tasks=()) -> bytes:
    count = len(clients) if clients_count is None else clients_count
    head = layout.WORKER.pack(generation, time.monotonic_ns(), cpu_ns, 5, sent, received, 300, 0, count, 0,
                              *tasks, *[0] * (15 - len(tasks)))  # fmt: skip
    return head + b"".join(clients) + bytes((MOST - len(clients)) * layout.CLIENT_BYTES)


def client(number, rank, *, in_flight=0, posted=7, kind=3, form=6, waits=2, members=(1,), count=None) -> bytes:
    fixed = layout.CLIENT.pack(number, 4000 + rank, rank, 2, in_flight, posted, posted - in_flight, 0, 64, 32, 16,
                               10**9, 4 * 10**8)  # fmt: skip
    named = [*members, *[0] * (8 - len(members))]
    oldest = layout.OLDEST.pack(2 * 10**9, 1 << 20, kind, form, waits, len(members) if count is None else count, *named,
                                2, 0)  # fmt: skip
    return (fixed + oldest).ljust(layout.CLIENT_BYTES, b"\0")


def header(pages=1, **changes) -> bytes:
    page_bytes = layout.WORKER.size + MOST * layout.CLIENT_BYTES
    values = {
        "magic": layout.MAGIC, "version": layout.VERSION, "workers": pages,
        "bytes": layout.HEADER_BYTES + pages * page_bytes, "page": page_bytes, "most": MOST, "tick": 100,
        "process": os.getpid(), "shares": 0, "started": 1,
    } | changes  # fmt: skip
    return layout.HEADER.pack(*values.values()).ljust(layout.HEADER_BYTES, b"\0")


class Service:
    """Answers each observer with `status`, `text` and, if there is any, `memory`; publishes it anew if `prompt`."""

    def __init__(
        self, folder: Path, memory: bytes | None, *, status=0, text=b"", answer=None, sealed=True, name="job", flags=0,
        prompt=True
    ):  # fmt: skip
        folder.mkdir(mode=0o700, exist_ok=True)
        self.path = folder / f"{name}.sock"
        self.memory = memory
        self._prompt = prompt
        self._answer = answer or layout.REPLY.pack(layout.LINK_VERSION, status, flags, 1, 0, 1, os.getpid(), 0, text)
        self._fd = None
        if memory is not None:
            self._fd = os.memfd_create("observation", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
            os.write(self._fd, memory)
            if sealed:
                fcntl.fcntl(self._fd, ADD_SEALS, SEAL_SHRINK)
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listening.bind(str(self.path))
        self._listening.listen()
        self._observers = []
        self.requests = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.requests.append(connection.recv(1024))
                if self._prompt:
                    self._publish_anew()
                socket.send_fds(connection, [self._answer], [] if self._fd is None else [self._fd])
                self._observers.append(connection)

    def _publish_anew(self) -> None:
        page_bytes = len(page())
        whole = (len(self.memory or b"") - layout.HEADER_BYTES) // page_bytes
        for number in range(whole):
            os.pwrite(self._fd, struct.pack("<Q", time.monotonic_ns()), layout.HEADER_BYTES + number * page_bytes + 8)

    def publish(self, number: int, content: bytes) -> None:
        os.pwrite(self._fd, content, layout.HEADER_BYTES + number * len(content))

    def end(self) -> None:
        if self._listening.fileno() < 0:
            return
        self.path.unlink(missing_ok=True)
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for connection in self._observers:
            connection.close()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
