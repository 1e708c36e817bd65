# SPDX-License-Identifier: BSD-3-Clause
"""Somebody between the two ends of a TCP connection: a port of this machine that passes on, frame by frame, what comes,
and does to one frame what a test wants. It knows how long frames are, as everybody on the way does, and no key."""

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Optional

FORTH, BACK = "forth", "back"  # what the one who has connected says, and what it hears
Recording = dict[tuple[str, int], bytes]


@dataclass(frozen=True)
class Wire:
    """greeting: lengths of what each says before there are keys. frame: how long the frame is that begins there, as far
    as it shows; None: not known yet."""

    greeting: dict[str, list[int]]
    frame: Callable[[bytes], Optional[int]]


def _fabric_frame(came):
    """8 bytes of fields, a header, a tag; the payload and its tag (fabric/tcp/frame.hpp)."""
    if len(came) < FABRIC_PREFIX:
        return None
    (payload,) = struct.unpack_from("<I", came)
    return FABRIC_PREFIX + (payload + (16 if came[6] else 0) if payload else 0)


FABRIC_PREFIX = 104 + 16
_KEYED = {FORTH: [108, 32], BACK: [80, 35]}  # seal/handshake.hpp
FABRIC = Wire(_KEYED, _fabric_frame)
HIDDEN_LINE = Wire(_KEYED, lambda came: len(came) or None)  # device/line.hpp: one record for each answer, sent at once


def _store_frame(came):
    """A length and its proof, the words and theirs (rendezvous/conversation.py)."""
    return None if len(came) < 4 else 4 + 32 + struct.unpack_from("!I", came)[0] + 32


STORE = Wire({FORTH: [32], BACK: [32]}, _store_frame)


@dataclass
class Plan:
    """deed gets the frames from number `at` on of the first connection, and says what becomes of them: None until it
    has enough of them. impostor: nothing of what comes goes on, only what was recorded."""

    deed: Optional[Callable[[list[bytes]], Optional[list[bytes]]]] = None
    side: str = FORTH
    at: int = 0
    impostor: Recording = field(default_factory=dict)


def flip(place: float):
    def deed(frames):
        at = int(place * (len(frames[0]) - 1))
        return [frames[0][:at] + bytes([frames[0][at] ^ 4]) + frames[0][at + 1 :]]

    return deed


def repeat(frames):
    return [frames[0], frames[0]]


def swap(frames):
    return None if len(frames) < 2 else [frames[1], frames[0]]


def leave_out(frames):
    return None if len(frames) < 2 else [frames[1]]


def replaced_by(frame):
    return lambda frames: [frame]


class Relay:
    """Before somebody connects, `far` is to be known."""

    far: tuple[str, int]

    def __init__(self, wire: Wire, plan: Plan | None = None):
        self.wire, self.plan = wire, plan or Plan()
        self.done = False  # the deed, or all of what an impostor has
        self.recorded: Recording = {}  # of the first connection
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._stop, self._stops = socket.socketpair()
        self._waiting = selectors.DefaultSelector()
        for waited in (self._listening, self._stops):
            self._waiting.register(waited, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.close()
        self._thread.join()
        for found in list(self._waiting.get_map().values()):
            found.fileobj.close()
        self._waiting.close()

    def _run(self):
        while True:
            for found, _ in self._waiting.select():
                if found.fileobj is self._stops:
                    return
                if found.fileobj is self._listening:
                    self._accept()
                elif found.fileobj.fileno() >= 0:
                    self._hear(found.data)

    def _accept(self):
        near, _ = self._listening.accept()
        try:
            far = socket.create_connection(self.far)
        except OSError:
            return near.close()
        first = self.connections == 0
        self.connections += 1
        for here, there, side in ((near, far, FORTH), (far, near, BACK)):
            self._waiting.register(here, selectors.EVENT_READ, _Direction(self, here, there, side, first))

    def _hear(self, direction):
        came = b""
        with contextlib.suppress(OSError):
            came = direction.here.recv(1 << 20)
        try:
            if came:
                return direction.take(came)
        except OSError:  # who was to hear it has gone
            pass
        for end in (direction.here, direction.there):
            with contextlib.suppress(KeyError, ValueError):
                self._waiting.unregister(end)
            end.close()


class _Direction:
    def __init__(self, relay, here, there, side, first):
        self.relay, self.here, self.there, self.side, self.first = relay, here, there, side, first
        self.came, self.pieces, self.held = b"", 0, []

    def take(self, came):
        self.came += came
        greeting = self.relay.wire.greeting[self.side]
        while self.came:
            known = self.pieces < len(greeting)
            length = greeting[self.pieces] if known else self.relay.wire.frame(self.came)
            if length is None or len(self.came) < length:
                return
            piece, self.came = self.came[:length], self.came[length:]
            number, self.pieces = self.pieces - len(greeting), self.pieces + 1
            for one in self.what_becomes_of(piece, number):
                self.there.sendall(one)

    def what_becomes_of(self, piece, number):
        relay, plan = self.relay, self.relay.plan
        if self.first:
            relay.recorded[self.side, number] = piece
        if plan.impostor:
            relay.done = True
            said = plan.impostor.get((self.side, number))
            return [said] if said else []
        if plan.deed is None or relay.done or self.side != plan.side or not self.first or number < plan.at:
            return [piece]
        self.held.append(piece)
        out = plan.deed(self.held)
        relay.done = out is not None
        return out or []
