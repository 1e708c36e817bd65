# SPDX-License-Identifier: BSD-3-Clause
"""Ranks meet in a store: rank 0 draws what all must know, each attaches and leaves its address, rank 0 tells all of
all."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from offpath.api.failures import ArgumentError, OffpathError, WaitTimeout
from offpath.rendezvous.folder_store import FolderStore
from offpath.rendezvous.secret import WORDS_BYTES, Drawn, SealedStore, draw, find_secret, leave_secret
from offpath.rendezvous.stores import Deadline, Store, await_key, count

_GRACE_S = 5.0  # rank 0 decides that somebody is missing; the others still hear it
_NAMED = 8
_MOST_TOLD = 1000  # characters of what a rank has failed with


@dataclass(frozen=True)
class Met:
    drawn: Drawn
    addresses: list[bytes]


class Meeting:
    """secret: what is called for it may raise OffpathError, which all others hear. Without one, one is drawn."""

    def __init__(
        self, store: Store, name: str, rank: int, size: int, timeout: float,
        secret: bytes | Callable[[], bytes] = b"",
    ):  # fmt: skip
        self.store, self.name, self.rank, self.size = store, name, rank, size
        self.deadline = Deadline(timeout)
        self._secret = secret
        self._held_before = 0
        self._left: FolderStore | None = None
        self._sealed: Store = store  # until the secret is known

    def hold(self, address_of: Callable[[Drawn], bytes]) -> Met:
        """address_of attaches. Raises WaitTimeout, which says who is missing; what another rank has failed with; or
        what address_of raises."""
        self._held_before = count(self.store, self._counter, 0)
        try:
            return self._hold(address_of)
        finally:
            if self._left is not None:
                self._left.close(last=True)

    def _hold(self, address_of: Callable[[Drawn], bytes]) -> Met:
        words = (
            secrets.token_bytes(WORDS_BYTES) if self.rank == 0 else self._of_rank_0(self.store, "drawn")[-WORDS_BYTES:]
        )
        try:
            drawn = self._draw(words)
            self._set(f"address/{self.rank}", address_of(drawn))
        except OffpathError as error:
            text = f"rank {self.rank} on {socket.gethostname()}: {error}"
            # Without a proof, as it may be for want of the secret. Who writes there can stop a meeting in any case.
            self.store.set(self._key(f"failed/{self.rank}"), text.encode())
            if self.rank == 0:
                self._tell({"failed": text})
                self._see_off(range(self.size))
            else:
                self._set(f"done/{self.rank}", b"1")
            raise
        if self.rank == 0:
            addresses = self._collect()
            count(self.store, self._counter, 1)  # before anybody can go on, and come again
            self._tell({"addresses": [address.hex() for address in addresses]})
            self._see_off(range(self.size))
            return Met(drawn, addresses)
        said = json.loads(self._of_rank_0(self._sealed, "table", _GRACE_S))
        self._set(f"done/{self.rank}", b"1")
        if "failed" in said:
            raise WaitTimeout(said["failed"]) if said.get("late") else OffpathError(said["failed"])
        if len(said["addresses"]) != self.size:
            raise ArgumentError(
                f"rank 0 says that there are {len(said['addresses'])} ranks, and rank {self.rank} that there are "
                f"{self.size} (all start as one job). See what has started them."
            )
        return Met(drawn, [bytes.fromhex(address) for address in said["addresses"]])

    def _draw(self, words: bytes) -> Drawn:
        """What travels is of no use without the secret, and what is changed on its way is noticed by it."""
        secret = self._secret if isinstance(self._secret, bytes) else self._secret()
        key = self._key("secret")
        if not secret and self.rank == 0:
            secret, self._left = leave_secret(self.store, key, words)
        elif not secret:
            secret = find_secret(self.store, key, words, self.rank)
        drawn = draw(words, secret)
        self._sealed = SealedStore(self.store, drawn.key)
        if self.rank == 0:
            self._set("drawn", words)
        else:
            self._sealed.get(self._key("drawn"))
        return drawn

    def _collect(self) -> list[bytes]:
        found: dict[int, bytes] = {}
        for rank in range(self.size):
            address = self._address(rank, 0)
            while address is None and not self.deadline.over:
                self._look_for_failures()
                address = self._address(rank, min(0.2, self.deadline.left()))
            if address is not None:
                found[rank] = address
        if len(found) < self.size:
            self._look_for_failures()
            missing = [rank for rank in range(self.size) if rank not in found]
            text = (
                f"{ranks_text(missing)} of {self.size} did not come within {self.deadline.seconds:g} s (a team needs "
                "all its members). See whether they run, or raise OFFPATH_INIT_TIMEOUT_S."
            )
            self._tell({"failed": text, "late": True})
            self._see_off(list(found))
            raise WaitTimeout(text)
        return [found[rank] for rank in range(self.size)]

    def _look_for_failures(self) -> None:
        for rank in range(self.size):
            failed = await_key(self.store, self._key(f"failed/{rank}"), Deadline(0))
            if failed is not None:
                text = "".join(c for c in failed.decode(errors="replace") if c.isprintable())[:_MOST_TOLD]
                self._tell({"failed": text})
                self._see_off(range(self.size))
                raise OffpathError(text)

    def _address(self, rank: int, seconds: float) -> bytes | None:
        try:
            return await_key(self._sealed, self._key(f"address/{rank}"), Deadline(seconds))
        except OffpathError as error:
            self._tell({"failed": str(error)})
            raise

    def _tell(self, what: dict[str, object]) -> None:
        self._set("table", json.dumps(what).encode())

    def _see_off(self, ranks: Iterable[int]) -> None:
        """The store is rank 0's, and ends with it: these have read it first, or had the time."""
        until = Deadline(_GRACE_S)
        for rank in ranks:
            if rank == 0:
                continue
            await_key(self.store, self._key(f"done/{rank}"), until)

    def _of_rank_0(self, store: Store, what: str, seconds_more: float = 0.0) -> bytes:
        value = await_key(store, self._key(what), self.deadline, seconds_more)
        if value is None:
            raise WaitTimeout(
                f"rank 0 of {self.size} did not come within {self.deadline.seconds:g} s (it tells all others where "
                f"they are; this is rank {self.rank}, process {os.getpid()}). See whether it runs, or raise "
                "OFFPATH_INIT_TIMEOUT_S."
            )
        return value

    def _set(self, what: str, value: bytes) -> None:
        self._sealed.set(self._key(what), value)

    @property
    def _counter(self) -> str:
        return f"offpath/{self.name}/held"

    def _key(self, what: str) -> str:
        """Of this meeting: the store may have what one of the same name has left."""
        return f"offpath/{self.name}/{self._held_before}/{what}"


def ranks_text(ranks: list[int]) -> str:
    """rank 3; ranks 1, 2, 5; ranks 1, 2, ... (40 in all)."""
    shown = ", ".join(str(rank) for rank in ranks[:_NAMED])
    more = f", ... ({len(ranks)} in all)" if len(ranks) > _NAMED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"
