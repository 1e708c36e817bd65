# SPDX-License-Identifier: BSD-3-Clause
"""A store in the memory of one process, which others reach by TCP. Both ends prove that they know the job's secret
before anything else is said, and each message carries a proof of its own. Values are not encrypted."""

from __future__ import annotations

import socket
import struct
import time

from offpath.api.failures import AccessError, ArgumentError, NoServiceError, WaitTimeout
from offpath.rendezvous.conversation import Conversation
from offpath.rendezvous.secret import SHORTEST
from offpath.rendezvous.tcp_server import TcpServer

_PATIENCE_S = 20.0


class TcpStore:
    """serves: this process keeps the values (rank 0), at `port` of all its addresses; others connect to host:port.

    secret: what only processes of the job know, at least 16 bytes. Raises ArgumentError, NoServiceError (the port is
    taken), WaitTimeout (nobody answers there).
    """

    def __init__(self, host: str, port: int, *, serves: bool, secret: bytes, timeout: float = 300.0):
        if len(secret) < SHORTEST:
            raise ArgumentError(
                "the processes of this job have no common secret (anybody on the network could join them, or read "
                "the job's token). Set OFFPATH_JOB_SECRET to the same 16 or more random characters for all of them, "
                "or pass comm= or store=."
            )
        self._secret = secret
        self._values: dict[str, bytes] = {}
        self._server: TcpServer | None = None
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
            self._ask(b"S" + struct.pack("!I", len(key.encode())) + key.encode() + value)

    def get(self, key: str) -> bytes:
        if self._line is None:
            return self._values[key]
        answer = self._ask(b"G" + key.encode())
        if answer[:1] != b"1":
            raise KeyError(key)
        return answer[1:]

    def _ask(self, words: bytes) -> bytes:
        """Raises AccessError, NoServiceError: then nothing more is asked."""
        assert self._line is not None
        try:
            return self._line.ask(words)
        except ValueError as error:
            self._line.close()
            raise AccessError(
                f"what came from rank 0 at {self.where} is not what it has sent ({error}; somebody on the way has "
                "changed it). See who is between the nodes."
            ) from None
        except OSError as error:
            self._line.close()
            raise NoServiceError(
                f"the connection to rank 0 at {self.where} has ended ({error.strerror or error}; rank 0 closes it "
                "where what it hears was changed on the way). See whether rank 0 runs, and who is between the nodes."
            ) from None

    def close(self, last: bool = True) -> None:
        if self._server is not None:
            self._server.close()
        if self._line is not None:
            self._line.close()

    def _serve(self, port: int) -> None:
        both = socket.has_dualstack_ipv6()
        try:
            listening = socket.create_server(
                ("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both, backlog=1024
            )
        except OSError as error:
            raise NoServiceError(
                f"port {port} cannot be opened ({error.strerror}; the other ranks look for rank 0 there). Name a "
                "free one in OFFPATH_INIT_ADDRESS=host:port on all ranks."
            ) from None
        self._server = TcpServer(listening, self._secret, self._reply)

    def _reply(self, asked: bytes) -> bytes:
        if asked[:1] == b"S":
            (length,) = struct.unpack("!I", asked[1:5].ljust(4, b"\0"))
            self._values[asked[5 : 5 + length].decode()] = asked[5 + length :]
            return b"1"
        value = self._values.get(asked[1:].decode())
        return b"0" if value is None else b"1" + value

    def _connect(self, host: str, port: int, timeout: float) -> _Line:
        """Rank 0 may come late."""
        end, said = time.monotonic() + timeout, ""
        while True:
            try:
                return _Line(socket.create_connection((host, port), timeout=_PATIENCE_S), self._secret)
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

    def __init__(self, connection: socket.socket, secret: bytes):
        self._socket, self._conversation = connection, Conversation(secret, serves=False)
        connection.settimeout(_PATIENCE_S)
        try:
            connection.sendall(self._conversation.first)
            while not self._conversation.proven:
                self._more()
        except BaseException:
            connection.close()
            raise

    def ask(self, words: bytes) -> bytes:
        self._socket.sendall(self._conversation.say(words))
        while True:
            for answer in self._more():
                return answer

    def close(self) -> None:
        self._socket.close()

    def _more(self) -> list[bytes]:
        came = self._socket.recv(1 << 20)
        if not came:
            raise ConnectionResetError("the other end has closed the connection")
        heard, answer = self._conversation.hear(came)
        if answer:
            self._socket.sendall(answer)
        return heard
