# SPDX-License-Identifier: BSD-3-Clause
"""offpath.init(): from nothing to a team of all ranks."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

from offpath.api.failures import ArgumentError, NoServiceError, OffpathError
from offpath.api.session import Session, attach
from offpath.api.team import Team
from offpath.base.errors import UserError
from offpath.base.paths import runtime_folder
from offpath.rendezvous import with_mpi
from offpath.rendezvous.folder_store import FolderStore
from offpath.rendezvous.launchers import Place, find_place, given_secret
from offpath.rendezvous.meeting import Meeting, Met
from offpath.rendezvous.secret import Drawn, check_secret
from offpath.rendezvous.stores import Store, of_torch
from offpath.rendezvous.tcp_store import TcpStore

_meetings = itertools.count(1)
_worlds: weakref.WeakSet[Team] = weakref.WeakSet()


def init(
    comm: Any = None, *, store: Store | None = None, rank: int | None = None, size: int | None = None,
    cores: str | None = None, timeout: float | None = None,
) -> Team:  # fmt: skip
    """Attaches and makes the team of all ranks, which all call it. They are found by their launcher (torchrun, Slurm,
    mpirun); by `comm`, a communicator of mpi4py; or by rank, size and a `store` with set and get, as torch's.

    cores: where this node's service may run ("2,3"). timeout: seconds in which all must have come
    (OFFPATH_INIT_TIMEOUT_S, else 300). Close the team, or use it in a with statement, at the end; a program that ends
    does it by itself.
    """
    seconds = _seconds(timeout)
    opened: list[Session] = []

    def address_of(place: Place) -> Callable[[Drawn], bytes]:
        def address(drawn: Drawn) -> bytes:
            opened.append(attach(drawn.token, cores=cores, node_only=place.is_local, node_sessions=place.local_size))
            return opened[0].address

        return address

    try:
        if comm is not None:
            with_mpi.check_communicator(comm)
            with_mpi.await_all(comm, seconds)
            place = Place("mpi4py", comm.Get_rank(), comm.Get_size(), with_mpi.ranks_here(comm), "")
            met = with_mpi.meet(comm, seconds, address_of(place))
        else:
            place = _place(store, rank, size)
            met = _meet(place, store, seconds, address_of(place))
        return _team(opened[0], place, met)
    except BaseException:
        for session in opened:
            session.close()
        raise


def _place(store: Store | None, rank: int | None, size: int | None) -> Place:
    if (rank is None) != (size is None):
        raise ArgumentError("rank and size belong together. Give both, or none.")
    if rank is None or size is None:
        return find_place()
    if not 0 <= rank < size:
        raise ArgumentError(f"there is no rank {rank} of {size}. Ranks begin at 0.")
    if store is None and size > 1:
        raise ArgumentError(
            "rank and size alone do not find the others. Pass a store, too (offpath.FolderStore, torch's)."
        )
    local = 1 if size == 1 else 0
    return Place("the program", rank, size, local, f"alone-{os.getpid()}", secret=given_secret(os.environ))


def _meet(place: Place, store: Store | None, seconds: float, address_of: Callable[[Drawn], bytes]) -> Met:
    made = None if store is not None else _own_store(place, seconds)
    chosen = store if made is None else made
    assert chosen is not None
    # A process may have met others before, or been alone, of which those that it meets now know nothing.
    name = "all" if place.size == 1 or of_torch(chosen) else f"{next(_meetings)}"
    meeting = Meeting(chosen, name, place.rank, place.size, seconds, check_secret(place.secret))
    try:
        return meeting.hold(address_of)
    finally:
        if made is not None:
            made.close(last=place.rank == 0)


def _own_store(place: Place, seconds: float) -> FolderStore | TcpStore:
    folder = os.environ.get("OFFPATH_INIT_FOLDER")
    if folder and not place.is_local:
        return FolderStore(folder)
    if place.is_local:
        try:
            return FolderStore(runtime_folder() / f"meet-{place.job}", of_one_node=True)
        except UserError as error:
            raise NoServiceError(str(error)) from None
    address = _given_address() or place.address
    if address is None:
        raise ArgumentError(
            f"{place.launcher} does not say where rank 0 is (the ranks are on several nodes). Pass "
            "comm=MPI.COMM_WORLD of mpi4py, or set OFFPATH_INIT_ADDRESS=host:port of rank 0, or OFFPATH_INIT_FOLDER "
            "to a new folder that all nodes see."
        )
    return TcpStore(*address, serves=place.rank == 0, secret=place.secret, timeout=seconds)


def _given_address() -> tuple[str, int] | None:
    text = os.environ.get("OFFPATH_INIT_ADDRESS")
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ArgumentError(f"OFFPATH_INIT_ADDRESS={text} is no address. Write host:port, the same for all ranks.")
    return host.strip("[]"), int(port)


def _seconds(timeout: float | None) -> float:
    text = os.environ.get("OFFPATH_INIT_TIMEOUT_S", "300") if timeout is None else str(timeout)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        raise ArgumentError(
            f"{text} is no number of seconds to wait for all ranks. Set OFFPATH_INIT_TIMEOUT_S to a positive one."
        )
    return seconds


def _team(session: Session, place: Place, met: Met) -> Team:
    world = Team(session, met.drawn.team_id, place.rank, met.addresses)
    last = world.sub(range(place.size))  # its only operation is the last one, whatever came before
    assert last is not None

    def leave(well: bool) -> None:
        if well and session.alive:
            with contextlib.suppress(OffpathError):
                last.timeout = world.timeout
                last.barrier()
        session.close()

    world._leave, world._key = leave, met.drawn.key
    _worlds.add(world)
    return world


@atexit.register
def _leave_all() -> None:
    """A program that ends by an error has peers that may never come."""
    well = getattr(sys, "last_value", None) is None
    for world in list(_worlds):
        leave, world._leave = world._leave, None
        if leave is not None and world.session.mine:
            leave(well)
