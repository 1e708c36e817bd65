# SPDX-License-Identifier: BSD-3-Clause
"""What a process has of its job, whatever groups it is in: a session, and the key by which members of groups know each
other."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from dataclasses import dataclass
from typing import Any

import torch.distributed

from offpath.api.failures import OffpathError
from offpath.api.session import Session, attach
from offpath.api.team import Team
from offpath.rendezvous.folder_store import FolderStore
from offpath.rendezvous.launchers import given_secret
from offpath.rendezvous.secret import drawn_once
from offpath.rendezvous.start import init


@dataclass(frozen=True)
class Joined:
    """world: of all processes, which leave together; without it the members of each group do."""

    session: Session
    key: bytes
    world: Team | None = None


_joined: Joined | None = None
_alone: Team | None = None  # of a process that works without others
_lasts: dict[tuple[bytes, ...], Team] = {}  # by the members of a group; its only operation is the last one
_lock = threading.RLock()


def join(store: Any, rank: int, size: int, seconds: float) -> Team | None:
    """Where torch has no default group yet, this one is it: all processes meet, and this is their team. None: this
    process belongs to a job."""
    global _joined
    with _lock:
        if _is_joined() or torch.distributed.is_initialized():
            return None
        world = init(store=store, rank=rank, size=size, timeout=seconds)
        _joined = Joined(world.session, world._key, world)
        return world


def joined() -> Joined:
    """Attaches, if this process has not, to the job of whichever process of torch's default group was the first to."""
    global _joined
    with _lock:
        if not _is_joined():
            drawn, folder = drawn_once(_default_store(), torch.distributed.get_rank(), given_secret(os.environ))
            if folder is not None:  # others look there until this process ends
                atexit.register(_remove, folder, os.getpid())
            _joined = Joined(attach(drawn.token), drawn.key)
        assert _joined is not None
        return _joined


def session() -> Session:
    """The job's; of a process without one, its own."""
    global _alone
    with _lock:
        if _is_joined():
            return joined().session
        if _alone is None or _alone.session.closed:
            _alone = init(rank=0, size=1)
        return _alone.session


def note_group(team: Team, addresses: list[bytes], seconds: float) -> None:
    """Its members may still take what this process has sent them when it is through."""
    members = tuple(addresses)
    with _lock:
        if joined().world is None and members not in _lasts:
            last = team.sub(range(team.size), label="last")
            assert last is not None
            last.timeout = seconds
            _lasts[members] = last


def _is_joined() -> bool:
    return _joined is not None and not _joined.session.closed


def _default_store() -> Any:
    """None where this PyTorch does not tell."""
    find = getattr(torch.distributed.distributed_c10d, "_get_default_store", None)
    return None if find is None else find()


def _remove(folder: FolderStore, process: int) -> None:
    if os.getpid() == process:
        folder.close(last=True)


@atexit.register
def _leave() -> None:
    """A program that ends by an error has peers that may never come."""
    if _joined is None or not _joined.session.mine:
        return
    ends = []
    for last in _lasts.values() if getattr(sys, "last_value", None) is None else ():
        with contextlib.suppress(OffpathError):
            ends.append(last.ibarrier())
    for end in ends:
        with contextlib.suppress(OffpathError):
            end.wait()
