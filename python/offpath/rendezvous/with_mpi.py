# SPDX-License-Identifier: BSD-3-Clause
"""Ranks meet over a communicator of mpi4py."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any

from offpath.api.failures import ArgumentError, OffpathError, WaitTimeout
from offpath.rendezvous.launchers import given_secret
from offpath.rendezvous.meeting import Met
from offpath.rendezvous.secret import WORDS_BYTES, Drawn, check_secret, draw
from offpath.rendezvous.stores import Deadline


def ranks_here(comm: Any) -> int:
    """How many ranks of the communicator are on this node."""
    from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    count = int(node.Get_size())
    node.Free()
    return count


def check_communicator(comm: Any) -> None:
    if not all(hasattr(comm, name) for name in ("Get_rank", "Get_size", "Ibarrier", "bcast", "allgather")):
        raise ArgumentError(
            f"comm is {type(comm).__name__}, no communicator of mpi4py. Pass MPI.COMM_WORLD, or nothing."
        )


def await_all(comm: Any, timeout: float) -> None:
    """MPI's own collectives have no bound, so all are awaited first."""
    request, deadline = comm.Ibarrier(), Deadline(timeout)
    while not request.Test():
        if deadline.over:
            raise WaitTimeout(
                f"not all {comm.Get_size()} ranks of the communicator came within {timeout:g} s (this is rank "
                f"{comm.Get_rank()}; MPI does not say which are missing). See whether all call offpath.init()."
            )
        time.sleep(0.0005)


def meet(comm: Any, timeout: float, address_of: Callable[[Drawn], bytes]) -> Met:
    """Collective over comm. What MPI carries is MPI's to protect; a secret that was given counts as well."""
    rank_0 = comm.Get_rank() == 0
    words, drawn_one = comm.bcast(
        (secrets.token_bytes(WORDS_BYTES), secrets.token_bytes(WORDS_BYTES)) if rank_0 else None
    )
    drawn, address, failed = draw(words, given_secret(os.environ) or drawn_one), b"", ""
    try:
        check_secret(given_secret(os.environ))
        address = address_of(drawn)
    except OffpathError as error:
        failed = f"rank {comm.Get_rank()} on {socket.gethostname()}: {error}"
    await_all(comm, timeout)
    said = comm.allgather((address, failed))
    for _, text in said:
        if text:
            raise OffpathError(text)
    return Met(drawn, [one for one, _ in said])
