# SPDX-License-Identifier: BSD-3-Clause
"""A store in the memory of one process, which others reach by TCP. Both ends prove that they know the job's secret
before anything else is said, and each message carries a proof of its own. Values are not encrypted."""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import struct
import threading
import time

from offpath.api.failures import ArgumentError, NoServiceError, WaitTimeout

_NONCE = 32
_PROOF = 32
_LIMIT = 64 << 20
_PATIENCE_S = 20.0
_SHORTEST_SECRET = 16


class TcpStore:
    """serves: this process keeps the values (rank 0), at `port` of all its addresses; others connect to host:port.

    secret: what only processes of the job know, at least 16 bytes. Raises ArgumentError, NoServiceError (the port is
    taken), WaitTimeout (nobody answers there).
    """

    def __init__(self, host: str, port: int, *, serves: bool, secret: bytes, timeout: float = 300.0):
        if len(secret) < _SHORTEST_SECRET:
            raise ArgumentError(
                "the processes of this job have no common secret (anybody on the network could join them, or read "
                "the job's token). Set OFFPATH_JOB_SECRET to the same 16 or more random characters for all of them, "
                "or pass comm= or store=."
            )
        self._secret = secret
        self._values: dict[str, bytes] = {}
        self._listening: socket.socket | None = None
        self._line: _Line | None = None
        self.where = f"{host}:{port}"
        if serves:
            self._serve(port)
        else:
            self._line = self._connect(host, port, timeout)

    def set(self, key: str, value: bytes) -> None:
        if self._line is None:
            self._values[key] = bytes(value)
        else:
            self._line.ask(b"S" + struct.pack("!I", len(key.encode())) + key.encode() + value)

    def get(self, key: str) -> bytes:
        if self._line is None:
            return self._values[key]
        answer = self._line.ask(b"G" + key.encode())
        if answer[:1] != b"1":
            raise KeyError(key)
        return answer[1:]

    def close(self, last: bool = True) -> None:
        if self._listening is not None:
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)  # ends the accept() of the other thread
            self._listening.close()
        if self._line is not None:
            self._line.close()

    def _serve(self, port: int) -> None:
        both = socket.has_dualstack_ipv6()
        try:
            self._listening = socket.create_server(
                ("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both, backlog=1024
            )
        except OSError as error:
            raise NoServiceError(
                f"port {port} cannot be opened ({error.strerror}; the other ranks look for rank 0 there). Name a "
                "free one in OFFPATH_INIT_ADDRESS=host:port on all ranks."
            ) from None
        threading.Thread(target=self._accept, args=(self._listening,), name="offpath-store", daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._answer, args=(peer,), name="offpath-store", daemon=True).start()

    def _answer(self, peer: socket.socket) -> None:
        try:
            with peer:
                line = _Line(peer, self._secret, serves=True)
                while True:
                    line.send(self._reply(line.receive()))
        except (OSError, ValueError, struct.error):
            return  # gone, or nobody of ours

    def _reply(self, asked: bytes) -> bytes:
        if asked[:1] == b"S":
            (length,) = struct.unpack_from("!I", asked, 1)
            self._values[asked[5 : 5 + length].decode()] = asked[5 + length :]
            return b"1"
        value = self._values.get(asked[1:].decode())
        return b"0" if value is None else b"1" + value

    def _connect(self, host: str, port: int, timeout: float) -> _Line:
        """Rank 0 may come late."""
        end, said = time.monotonic() + timeout, ""
        while True:
            try:
                return _Line(socket.create_connection((host, port), timeout=_PATIENCE_S), self._secret, serves=False)
            except ValueError as error:
                raise ArgumentError(
                    f"who listens at {host}:{port} does not know the job's secret ({error}). Give all ranks the same "
                    "OFFPATH_JOB_SECRET, or another port in OFFPATH_INIT_ADDRESS."
                ) from None
            except OSError as error:
                said = error.strerror or str(error)
            if time.monotonic() >= end:
                raise WaitTimeout(
                    f"rank 0 does not answer at {host}:{port} within {timeout:g} s ({said}). See whether it runs, "
                    "and whether OFFPATH_INIT_ADDRESS or MASTER_ADDR names its node."
                )
            time.sleep(0.05)


class _Line:
    """A connection on which both ends have proven the secret. Raises ValueError where the other one cannot, or changed
    anything; OSError when it is gone."""

    def __init__(self, connection: socket.socket, secret: bytes, serves: bool):
        self._socket = connection
        connection.settimeout(_PATIENCE_S)
        mine = os.urandom(_NONCE)
        connection.sendall(mine)
        other = self._exactly(_NONCE)
        said = (mine + other) if serves else (other + mine)
        self._out, self._in = (hmac.digest(secret, word + said, "sha256") for word in _words(serves))
        self._sent = self._received = 0
        self.send(b"")
        if self.receive() != b"":
            raise ValueError("greeting")
        connection.settimeout(None if serves else _PATIENCE_S)

    def ask(self, words: bytes) -> bytes:
        self.send(words)
        return self.receive()

    def send(self, words: bytes) -> None:
        proof = hmac.digest(self._out, struct.pack("!Q", self._sent) + words, "sha256")
        self._sent += 1
        self._socket.sendall(struct.pack("!I", len(words)) + proof + words)

    def receive(self) -> bytes:
        (length,) = struct.unpack("!I", self._exactly(4))
        if length > (_LIMIT if self._received else 0):
            raise ValueError("a message of that length is not ours")
        proof = self._exactly(_PROOF)
        words = self._exactly(length)
        if not hmac.compare_digest(proof, hmac.digest(self._in, struct.pack("!Q", self._received) + words, "sha256")):
            raise ValueError("its proof is wrong")
        self._received += 1
        return words

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, count: int) -> bytes:
        got = bytearray()
        while len(got) < count:
            part = self._socket.recv(min(count - len(got), 1 << 20))
            if not part:
                raise ConnectionResetError("the other end has closed the connection")
            got += part
        return bytes(got)


def _words(serves: bool) -> tuple[bytes, bytes]:
    return (b"server", b"client") if serves else (b"client", b"server")
