# SPDX-License-Identifier: BSD-3-Clause
"""Watching a running service: the request at its socket, and what it publishes, read and checked.

src/session/link.hpp and observation.hpp describe both. Nothing here changes the service: it publishes for as long as an
Observation is open.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import socket
import struct
import time
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Optional

from offpath.base import words
from offpath.base.errors import UserError

ANSWER_S = 5.0


def _record(macro: str) -> tuple[list[str], struct.Struct]:
    """Names and form of what is published, by the table that it is published by."""
    rows = words.rows("observed", macro)
    return [row["name"] for row in rows], struct.Struct("<" + "".join({64: "Q", 32: "I"}[row["bits"]] for row in rows))


def _kinds(of: words.Row) -> dict[int, str]:
    """What observers call the forms of a kind of operation; of one that has none, 0."""
    return {0: of["name"]} if of["forms"] == "itself" else words.texts(of["forms"])


REQUEST = struct.Struct("<IIQ40x")  # AttachRequest
REPLY = struct.Struct("<IiIIIIiI1024x252s4x")  # AttachReply
LINK_VERSION, OBSERVE, REPLACE, FAR = 10, 1, 3, 2
HEADER = struct.Struct("<8sIIQQIIiIQ")
WORKER_NAMES, WORKER = _record("OBSERVED_WORKER")
CLIENT_NAMES, CLIENT = _record("OBSERVED_CLIENT")
OLDEST = struct.Struct("<2Q4I8I2I")
MAGIC, VERSION, HEADER_BYTES, CLIENT_BYTES = b"\0OFFPO1\0", 2, 4096, 256
MOST_WORKERS, MOST_CLIENTS = 1024, 65536
GET_SEALS, SEAL_SHRINK = 1034, 2  # of fcntl
READS = 1000  # of a page that is being written meanwhile

KINDS = {row["number"]: _kinds(row) for row in words.rows("op_kinds") if row["forms"] != "nothing"}
WAITS = tuple(row["name"] for row in words.rows("waits"))
UNKNOWN_RANK = 0xFFFFFFFF


class NoService(Exception):
    """Nobody who knows the request listens there (any more)."""


@dataclass
class Oldest:
    """The oldest operation of a client in flight, and what it waits for."""

    kind: str
    bytes: int
    age_ns: int
    waits: str
    members: list[int]  # the first of those it waits for, in the operation's team
    members_count: int
    team_size: int


Client = make_dataclass("Client", [*((name, int) for name in CLIENT_NAMES), ("oldest", Optional[Oldest], None)])
Client.__doc__ = "What its worker says of a client. Without a team its rank is None."

Worker = make_dataclass(
    "Worker",
    [(name, int) for name in WORKER_NAMES if name not in ("generation", "clients")]
    + [("clients", list, field(default_factory=list))],
)
Worker.__doc__ = "What a worker says of itself; updated_ns is of CLOCK_MONOTONIC, 0: it has said nothing yet."


@dataclass
class Snapshot:
    process: int  # of the service, or of the agent of one on a DPU
    workers: list[Worker]
    far: bool = False  # the latter

    @property
    def clients(self) -> list[Client]:
        found = [client for worker in self.workers for client in worker.clients]
        return sorted(found, key=lambda client: (client.rank is None, client.rank, client.id))


class Observation:
    """A service that is being watched, until close()."""

    def __init__(self, path: Path):
        """Raises NoService where nobody listens, UserError where watching is refused."""
        self.path = path
        self._since_ns = time.monotonic_ns()
        self._socket = _connect(path)
        try:
            self._memory = self._ask()
            try:
                self._check()
            except BaseException:
                self._memory.close()
                raise
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        self._memory.close()
        self._socket.close()

    def fileno(self) -> int:
        """Readable when the service is gone."""
        return self._socket.fileno()

    def ended(self) -> bool:
        """The service is gone; read() gives what it published last."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def read(self) -> Snapshot:
        """What the workers published last; waits until each of them has since we came, or the service ends.

        What is there may have been published for somebody who came, and left, long ago.
        """
        workers = self._published()
        until = time.monotonic() + ANSWER_S
        while self._is_old(workers) and not self.ended() and time.monotonic() < until:
            time.sleep(0.002)
            workers = self._published()
        return Snapshot(self.process, workers, self.far)

    def _published(self) -> list[Worker]:
        return [self._worker(index) for index in range(self._workers)]

    def _is_old(self, workers: list[Worker]) -> bool:
        return any(worker.updated_ns < self._since_ns for worker in workers)

    def _ask(self) -> mmap.mmap:
        try:
            self._socket.send(REQUEST.pack(LINK_VERSION, OBSERVE, 0))
            data, descriptors, _, _ = socket.recv_fds(self._socket, REPLY.size + 1, 1)
        except OSError:
            raise NoService from None
        try:
            if len(data) != REPLY.size:
                raise NoService
            version, status, flags, _, _, _, self.process, _, text = REPLY.unpack(data)
            if status != 0:
                reason = text.split(bytes(1))[0].decode(errors="replace")
                raise UserError(f"{self._name()} is not to be watched: {reason}.")
            if version != LINK_VERSION or len(descriptors) != 1:
                raise self._foreign("its answer holds nothing to read")
            self.far = bool(flags & FAR)
            return _mapped(descriptors[0], self._foreign)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _check(self) -> None:
        magic, version, self._workers, size, self._page, self._most, self.tick_ms, process, _, self.started_ns = (
            HEADER.unpack_from(self._memory)
        )
        if magic != MAGIC:
            raise self._foreign("its format")
        if version != VERSION:
            raise self._foreign(f"version {version}, only {VERSION} is known")
        sane = 0 < self._workers <= MOST_WORKERS and self._most <= MOST_CLIENTS and process > 0
        whole = size == len(self._memory) == HEADER_BYTES + self._workers * self._page
        if not sane or not whole or self._page != WORKER.size + self._most * CLIENT_BYTES:
            raise self._foreign("its sizes do not fit together")
        self.process = process

    def _foreign(self, why: str) -> UserError:
        return UserError(
            f"{self._name()} publishes something unknown ({why}). Install the command line and the service together."
        )

    def _name(self) -> str:
        return f"the service at {self.path}"

    def _worker(self, index: int) -> Worker:
        begin = HEADER_BYTES + index * self._page
        for _ in range(READS):
            generation = self._generation(begin)
            head = dict(zip(WORKER_NAMES, WORKER.unpack_from(self._memory, begin)))
            count = min(head["clients"], self._most)
            records = self._memory[begin + WORKER.size : begin + WORKER.size + count * CLIENT_BYTES]
            if generation % 2 == 0 and generation == self._generation(begin):
                break
        clients = [_client(records, at) for at in range(0, len(records), CLIENT_BYTES)]
        del head["generation"]
        return Worker(**head | {"clients": clients})

    def _generation(self, begin: int) -> int:
        return struct.unpack_from("<Q", self._memory, begin)[0]


def replace(path: Path) -> tuple[int, int]:
    """Has the service there start another one and give it its place; waits for that.

    The process of the other one, and how many clients this one has.
    """
    with _connect(path) as connection:
        connection.settimeout(None)  # it has a limit of its own
        try:
            connection.send(REQUEST.pack(LINK_VERSION, REPLACE, 0))
            answer = connection.recv(REPLY.size + 1)
        except OSError:
            answer = b""
    if len(answer) != REPLY.size:
        raise UserError(f"the service at {path} has ended without an answer. Run the command again.")
    _, status, _, _, _, clients, process, _, text = REPLY.unpack(answer)
    if status != 0:
        reason = text.split(bytes(1))[0].decode(errors="replace").rstrip(".")
        raise UserError(
            f"the service at {path} stays, as no other one takes its place: {reason}. Nothing is lost; correct that, "
            "and run the command again."
        )
    return process, clients


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(ANSWER_S)
    try:
        connection.connect(str(path))
    except PermissionError:
        connection.close()
        raise UserError(f"the service at {path} belongs to another user (each sees only their own).") from None
    except OSError:
        connection.close()
        raise NoService from None
    return connection


def _mapped(descriptor: int, foreign) -> mmap.mmap:
    """Memory that could shrink under us would end us."""
    size = os.fstat(descriptor).st_size
    with contextlib.suppress(OSError):
        if fcntl.fcntl(descriptor, GET_SEALS) & SEAL_SHRINK and size >= HEADER_BYTES:
            return mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ)
    raise foreign("its memory is cut short or could be")


def _client(records: bytes, at: int) -> Client:
    client = Client(*CLIENT.unpack_from(records, at))
    client.rank = None if client.rank == UNKNOWN_RANK else client.rank
    client.oldest = _oldest(records, at + CLIENT.size) if client.in_flight > 0 else None
    return client


def _oldest(records: bytes, at: int) -> Oldest | None:
    age_ns, size, kind, form, waits, count, *members, team_size, _ = OLDEST.unpack_from(records, at)
    if kind not in KINDS:
        return None
    waits = WAITS[waits] if waits < len(WAITS) else WAITS[0]
    return Oldest(KINDS[kind].get(form, "none"), size, age_ns, waits, members[:count], count, team_size)
