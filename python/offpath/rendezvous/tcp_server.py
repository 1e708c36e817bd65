# SPDX-License-Identifier: BSD-3-Clause
"""The serving end of a TcpStore: one thread for all who come. A stranger costs a descriptor for two seconds, and there
are no more than a number of them at a time; then the oldest goes."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable

from offpath.rendezvous.conversation import Conversation

_PROVE_S = 2.0
_MOST_UNPROVEN = 128
_STRANGERS_BYTES = 256  # read at a time; more than a proof needs
_PEERS_BYTES = 1 << 20


class _Peer:
    def __init__(self, connection: socket.socket, secret: bytes):
        self.socket, self.until = connection, time.monotonic() + _PROVE_S
        self.conversation = Conversation(secret, serves=True)
        self.to_send = bytearray(self.conversation.first)


class TcpServer:
    """reply: what is answered to words of a peer that has proven the secret; called by the thread. Raises ValueError
    where they make no sense."""

    def __init__(self, listening: socket.socket, secret: bytes, reply: Callable[[bytes], bytes]):
        self._listening, self._secret, self._reply = listening, secret, reply
        self._unproven: dict[_Peer, None] = {}  # the oldest first
        self._waiting = selectors.DefaultSelector()
        self._stop, stops = socket.socketpair()
        self._listening.setblocking(False)
        self._waiting.register(self._listening, selectors.EVENT_READ)
        self._waiting.register(stops, selectors.EVENT_READ)
        self._stops = stops
        self._thread = threading.Thread(target=self._run, name="offpath-store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.close()
        self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                oldest = next(iter(self._unproven), None)
                for found, _ in self._waiting.select(
                    None if oldest is None else max(0, oldest.until - time.monotonic())
                ):
                    if found.fileobj is self._stops:
                        return
                    if found.data is None:
                        self._accept()
                    elif found.data.socket.fileno() >= 0:  # else it went for one that has just come
                        self._serve(found.data)
                now = time.monotonic()
                for peer in [peer for peer in self._unproven if peer.until <= now]:
                    self._drop(peer)
        finally:
            for found in list(self._waiting.get_map().values()):
                found.fileobj.close()  # type: ignore[union-attr]
            self._waiting.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor is left
            self._drop_oldest() if self._unproven else time.sleep(0.01)
            return
        if len(self._unproven) >= _MOST_UNPROVEN:
            self._drop_oldest()
        connection.setblocking(False)
        peer = _Peer(connection, self._secret)
        self._unproven[peer] = None
        self._waiting.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)

    def _serve(self, peer: _Peer) -> None:
        try:
            with contextlib.suppress(BlockingIOError):
                came = peer.socket.recv(_PEERS_BYTES if peer.conversation.proven else _STRANGERS_BYTES)
                if not came:
                    return self._drop(peer)
                self._hear(peer, came)
            with contextlib.suppress(BlockingIOError):
                while peer.to_send:
                    del peer.to_send[: peer.socket.send(peer.to_send)]
        except (OSError, ValueError):  # gone, or nobody of ours
            return self._drop(peer)
        more = selectors.EVENT_WRITE if peer.to_send else 0
        self._waiting.modify(peer.socket, selectors.EVENT_READ | more, peer)

    def _hear(self, peer: _Peer, came: bytes) -> None:
        heard, answer = peer.conversation.hear(came)
        peer.to_send += answer
        if peer.conversation.proven:
            self._unproven.pop(peer, None)
        for words in heard:
            peer.to_send += peer.conversation.say(self._reply(words))

    def _drop_oldest(self) -> None:
        self._drop(next(iter(self._unproven)))

    def _drop(self, peer: _Peer) -> None:
        self._unproven.pop(peer, None)
        self._waiting.unregister(peer.socket)
        peer.socket.close()
