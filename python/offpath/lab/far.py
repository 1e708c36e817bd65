# SPDX-License-Identifier: BSD-3-Clause
"""Commands in a node that is a virtual machine, as by ssh: one connection each, in the lab's own network.

    far.py serve LAB PLACE ADDRESS   inside: takes commands until the machine ends
    far.py run ADDRESS COMMAND...    outside: runs one there, with the environment, folder, input and signals of here

A script and not a module: inside there is nothing but Python's own library, and no wait for more.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

PORT = 7000
START, INPUT, SIGNAL, OUTPUT, ERRORS, END = range(6)  # kinds of what is said; INPUT of no bytes: there is no more
WHOLE = "/run/whole"  # where a machine sees the file system without the folders that it has to itself
CHUNK_BYTES = 1 << 16
NOT_STARTED, CONNECTION_LOST = 127, 255


class Line:
    """One connection: what is said has a kind, a length, and bytes."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection, self._lock = connection, threading.Lock()

    def say(self, kind: int, data: bytes = b"") -> None:
        with self._lock:
            self._connection.sendall(struct.pack("!BI", kind, len(data)) + data)

    def hear(self) -> tuple[int, bytes]:
        """Raises OSError when the other side is gone."""
        kind, length = struct.unpack("!BI", self._exactly(5))
        return kind, self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = self._connection.recv(length - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data


def serve(lab: str, place: str, address: str) -> None:
    state = f"/run/offpath-lab/{lab}"
    listener = socket.create_server(("", PORT), backlog=64)
    with open(f"{state}/shared") as listed:
        shared = listed.read().splitlines()
    with open(f"{state}/{place}/ready.new", "w") as ready:
        ready.write(address)
    os.rename(ready.name, f"{state}/{place}/ready")
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve_one, args=(connection, shared), daemon=True).start()


def _serve_one(connection: socket.socket, shared: list[str]) -> None:
    with connection, contextlib.suppress(OSError):
        line = Line(connection)
        start = json.loads(line.hear()[1])
        _show([start["folder"], *shared, *start["environment"].get("OFFPATH_LAB_SHARED", "").split(":")])
        folder = start["folder"] if os.path.isdir(start["folder"]) else "/"
        try:
            process = subprocess.Popen(
                start["command"], env=start["environment"], cwd=folder, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            line.say(ERRORS, f"{start['command'][0]}: {error.strerror}\n".encode())
            line.say(END, bytes([NOT_STARTED]))
            return
        threading.Thread(target=_await_end, args=(process, line, connection), daemon=True).start()
        try:
            while True:
                kind, data = line.hear()
                if kind == SIGNAL:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, data[0])
                elif data:
                    with contextlib.suppress(OSError, ValueError):
                        process.stdin.write(data)
                else:
                    process.stdin.close()
        finally:
            if process.poll() is None:  # whoever has started it is gone
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _await_end(process: subprocess.Popen, line: Line, connection: socket.socket) -> None:
    errors = threading.Thread(target=_carry, args=(process.stderr, line, ERRORS), daemon=True)
    errors.start()
    _carry(process.stdout, line, OUTPUT)
    errors.join()
    status = process.wait()
    with contextlib.suppress(OSError):
        line.say(END, bytes([status if status >= 0 else 128 - status]))
        connection.shutdown(socket.SHUT_RDWR)


def _carry(source, line: Line, kind: int) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(source.fileno(), CHUNK_BYTES):
            line.say(kind, data)


_show_lock = threading.Lock()


def _show(folders: list[str]) -> None:
    """A folder of programs that lies below a private one is there, too."""
    with _show_lock:
        for folder in folders:
            there = f"{WHOLE}{folder}"
            if os.path.isabs(folder) and os.path.isdir(there) and not os.path.isdir(folder):
                os.makedirs(folder)
                subprocess.run(["mount", "--bind", there, folder], check=False)


def run(address: str, command: list[str]) -> int:
    try:
        line = Line(socket.create_connection((address, PORT)))
        start = {"command": command, "environment": dict(os.environ), "folder": os.getcwd()}
        line.say(START, json.dumps(start).encode())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, lambda number, _frame: line.say(SIGNAL, bytes([number])))
        threading.Thread(target=_carry_input, args=(line,), daemon=True).start()
        while True:
            kind, data = line.hear()
            if kind == END:
                return data[0]
            while data:
                data = data[os.write(1 if kind == OUTPUT else 2, data) :]
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except OSError as error:
        print(
            f"offpath: the lab's machine at {address} does not answer ({error}). Run: offpath lab status",
            file=sys.stderr,
        )
        return CONNECTION_LOST


def _carry_input(line: Line) -> None:
    with contextlib.suppress(OSError):
        while True:
            data = os.read(0, CHUNK_BYTES)
            line.say(INPUT, data)
            if not data:
                return


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    status = run(sys.argv[2], sys.argv[3:])
    os._exit(status)  # a thread may wait for input
