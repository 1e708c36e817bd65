# SPDX-License-Identifier: BSD-3-Clause
"""What two processes say to prove that both know a secret, before anything else. Bytes in, bytes out. A message is its
length, a proof, its words, a proof: nothing of it is used, or waited for, before its proof was checked, as in
src/device/line.hpp."""

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
        self._sent = self._received = 0  # proofs
        self._awaited: int | None = None  # so many words follow, as far as that is known

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
        while (words := self._next()) is not None:
            if self.proven:
                heard.append(words)
            self.proven = True
        return heard, answer

    def say(self, words: bytes) -> bytes:
        """As it is to be sent."""
        length = struct.pack("!I", len(words))
        self._sent += 2
        return length + _proof(self._out, self._sent - 2, length) + words + _proof(self._out, self._sent - 1, words)

    def _next(self) -> bytes | None:
        if self._awaited is None and len(self._came) >= _HEAD:
            head = bytes(self._take(_HEAD))
            self._check(head[4:], head[:4])
            (self._awaited,) = struct.unpack("!I", head[:4])
            if self._awaited > (_LIMIT if self.proven else 0):
                raise ValueError("a message of that length is not ours")
        if self._awaited is None or len(self._came) < self._awaited + _PROOF:
            return None
        words = bytes(self._take(self._awaited))
        self._check(bytes(self._take(_PROOF)), words)
        self._awaited = None
        return words

    def _check(self, proof: bytes, words: bytes) -> None:
        self._received += 1
        if not hmac.compare_digest(proof, _proof(self._in, self._received - 1, words)):
            raise ValueError("its proof is wrong")

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
