# SPDX-License-Identifier: BSD-3-Clause
"""What two processes say to prove that both know a secret, before anything else. Bytes in, bytes out."""

from __future__ import annotations

import hmac
import os
import struct

_NONCE = 32
_PROOF = 32
_HEAD = 4 + _PROOF
_LIMIT = 64 << 20


class Conversation:
    """One end of it. `first` is to be sent before all else. Each message carries a proof of its own."""

    def __init__(self, secret: bytes, serves: bool):
        self.first = os.urandom(_NONCE)
        self.proven = False  # that the other end knows the secret
        self._secret, self._serves = secret, serves
        self._came = bytearray()
        self._out = self._in = b""
        self._sent = self._received = 0

    def hear(self, came: bytes) -> tuple[list[bytes], bytes]:
        """Whole messages, and what is to be sent now. Raises ValueError where the other end does not know the secret,
        or something was changed."""
        self._came += came
        answer: bytes = b""
        heard: list[bytes] = []
        if not self._in:
            if len(self._came) < _NONCE:
                return heard, answer
            self._agree(bytes(self._take(_NONCE)))
            answer = self.say(b"")
        while len(self._came) >= _HEAD:
            (length,) = struct.unpack_from("!I", self._came)
            if length > (_LIMIT if self.proven else 0):
                raise ValueError("a message of that length is not ours")
            if len(self._came) < _HEAD + length:
                break
            message = self._take(_HEAD + length)
            words = bytes(message[_HEAD:])
            if not hmac.compare_digest(message[4:_HEAD], _proof(self._in, self._received, words)):
                raise ValueError("its proof is wrong")
            self._received += 1
            if self.proven:
                heard.append(words)
            self.proven = True
        return heard, answer

    def say(self, words: bytes) -> bytes:
        """As it is to be sent."""
        self._sent += 1
        return struct.pack("!I", len(words)) + _proof(self._out, self._sent - 1, words) + words

    def _agree(self, other: bytes) -> None:
        said = self.first + other if self._serves else other + self.first
        names = (b"server", b"client") if self._serves else (b"client", b"server")
        self._out, self._in = (hmac.digest(self._secret, name + said, "sha256") for name in names)

    def _take(self, count: int) -> bytearray:
        taken = self._came[:count]
        del self._came[:count]
        return taken


def _proof(key: bytes, number: int, words: bytes) -> bytes:
    return hmac.digest(key, struct.pack("!Q", number) + words, "sha256")
