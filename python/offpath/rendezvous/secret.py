# SPDX-License-Identifier: BSD-3-Clause
"""What ranks make of a secret that never travels, so that who reads or writes their store learns and changes nothing
(docs/design/0035-job-secret.md)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offpath.api.constants import TEAM_ID_BYTES, TOKEN_BYTES
from offpath.api.failures import ArgumentError, OffpathError
from offpath.base.errors import UserError
from offpath.base.paths import runtime_folder
from offpath.rendezvous.folder_store import FolderStore
from offpath.rendezvous.stores import Store, of_torch, peek

SHORTEST = 16
WORDS_BYTES = 32  # that rank 0 draws for each meeting, and anybody may know
_PROOF_BYTES = 32
_JOB = "offpath/job/drawn"
_CURE = f"Set OFFPATH_JOB_SECRET to the same {SHORTEST} or more random characters for all ranks."


@dataclass(frozen=True)
class Drawn:
    """key: for SealedStore."""

    token: bytes
    team_id: bytes
    key: bytes


def draw(words: bytes, secret: bytes) -> Drawn:
    key = hashlib.sha256(secret).digest()
    made = hashlib.blake2b(words, key=key, digest_size=TOKEN_BYTES + TEAM_ID_BYTES).digest()
    sealing = hashlib.blake2b(words, key=key, digest_size=32, person=b"offpath-store").digest()
    return Drawn(made[:TOKEN_BYTES], made[TOKEN_BYTES:], sealing)


def check_secret(secret: bytes) -> bytes:
    """Raises ArgumentError for one that can be guessed."""
    if 0 < len(secret) < SHORTEST:
        raise ArgumentError(f"the job's secret has {len(secret)} characters (it could be guessed). {_CURE}")
    return secret


class SealedStore:
    """Another one, in which each value has a proof that somebody who knows the key has set it under that name."""

    def __init__(self, store: Store, key: bytes):
        self._store, self._key = store, key

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, self.sealed(key, value))

    def sealed(self, key: str, value: bytes) -> bytes:
        return self._proof(key, value) + value

    def get(self, key: str) -> bytes | None:
        found = peek(self._store, key)
        if found is None:
            return None
        if not hmac.compare_digest(found[:_PROOF_BYTES], self._proof(key, found[_PROOF_BYTES:])):
            raise OffpathError(
                f"what the ranks' store has under {key} was not written by a rank of this job that knows its secret "
                f"(somebody else writes there, or the ranks have different secrets). {_CURE}"
            )
        return found[_PROOF_BYTES:]

    def _proof(self, key: str, value: bytes) -> bytes:
        return hmac.digest(self._key, key.encode() + b"\0" + value, "sha256")


def leave_secret(store: Store, key: str, words: bytes) -> tuple[bytes, FolderStore | None]:
    """Rank 0, where the job was given none: draws one and leaves it where its user alone can read it: in a store that
    is private, else in a folder of this node, which the caller closes."""
    secret = secrets.token_bytes(WORDS_BYTES)
    if getattr(store, "private", False):
        store.set(key, secret)
        return secret, None
    folder = FolderStore(_left_at(words), of_one_node=True)
    folder.set(key, secret)
    return secret, folder


def find_secret(store: Store, key: str, words: bytes, rank: int) -> bytes:
    """Raises ArgumentError where it is not to be seen."""
    found = None
    if getattr(store, "private", False):
        found = peek(store, key)
    elif _left_at(words).exists():
        found = peek(FolderStore(_left_at(words), of_one_node=True), key)
    if found is None:
        raise ArgumentError(
            f"the ranks have no common secret, and rank {rank} on {socket.gethostname()} does not see the one that "
            f"another node has drawn (whoever reads their store could join the job). {_CURE}"
        )
    return found


def drawn_once(store: Any, rank: int, secret: bytes) -> tuple[Drawn, FolderStore | None]:
    """What all processes of a job have in common, whichever of them needs it first: that one draws it, the others find
    it in a store of torch's kind. Without a given secret the first one has a folder, too, for those of its node, and
    closes it in the end.

    Raises ArgumentError for another kind of store, or without a common secret; OffpathError where a stranger has
    written there.
    """
    if not of_torch(store):
        raise ArgumentError(
            "the processes of this job have no store in which one can be the first (they agree on a token there). "
            'Begin with init_process_group("offpath").'
        )
    check_secret(secret)
    found = peek(store, _JOB)
    if found is None:
        words = secrets.token_bytes(WORDS_BYTES)
        known, folder = (secret, None) if secret else leave_secret(store, _secret_of(words), words)
        drawn = draw(words, known)
        mine = SealedStore(store, drawn.key).sealed(_JOB, words)
        found = bytes(store.compare_set(_JOB, b"", mine))
        if found == mine:
            return drawn, folder
        if folder is not None:
            folder.close(last=True)
    words = found[-WORDS_BYTES:]
    drawn = draw(words, secret or find_secret(store, _secret_of(words), words, rank))
    SealedStore(store, drawn.key).get(_JOB)  # raises where somebody has set it who does not know the secret
    return drawn, None


def _secret_of(words: bytes) -> str:
    return f"offpath/job/secret/{words.hex()}"  # several may draw at a time


def _left_at(words: bytes) -> Path:
    try:
        return runtime_folder() / f"meet-{words[:WORDS_BYTES].hex()}"
    except UserError as error:
        raise ArgumentError(str(error)) from None
