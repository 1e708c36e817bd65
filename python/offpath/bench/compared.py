# SPDX-License-Identifier: BSD-3-Clause
"""The peers of Offpath where communication hides behind computation: which there are, and how each is run."""

from __future__ import annotations

from collections.abc import Sequence

from offpath.base.errors import UserError
from offpath.bench import measuring, placements
from offpath.bench.kit import options
from offpath.bench.kit.peers import OWN_THREADS
from offpath.bench.measuring import ALONE, CORES, PROTECTIONS, Peer
from offpath.launch import progress
from offpath.launch.mpis import MPICH, OPENMPI, TITLES

# The MPI's own progress thread, on the rank's core as Offpath's service is. The program stays as it is.
_ASYNC, _THREAD, _YIELDS = OWN_THREADS
THREADS = (
    # Without a core of its own, MPICH's must not spin on the rank's.
    Peer(_ASYNC, env={**progress.VARIABLES[MPICH], "OFFPATH_LAB_YIELD": "1"}, only_mpi=MPICH),
    Peer(_THREAD, env=progress.VARIABLES[OPENMPI], only_mpi=OPENMPI),
    Peer(_YIELDS, env={**progress.VARIABLES[OPENMPI], "OMPI_MCA_mpi_yield_when_idle": "1"}, only_mpi=OPENMPI),
)
PEERS = (ALONE.name, "tests", *(peer.name for peer in THREADS), *PROTECTIONS, "offpath")
USUAL = "host,tests,async,thread"
THREADS_HELP = "async: MPICH with its progress thread; thread: Open MPI with that of TCP, thread-yield: and idle yields"
HELP = (
    f"What to compare with: host, tests; {THREADS_HELP}; encrypt, unprotected: Offpath with another protection of the "
    "network. Offpath is always measured."
)


def names(text: str | None, kinds: Sequence[str], known: Sequence[str], usual: str) -> list[str]:
    """Those that were asked for; of the usual ones each MPI takes what it has. Raises UserError for one that none of
    the measured MPIs has."""
    found = options.names(usual if text is None else text, known, "a peer")
    for peer in THREADS:
        if text is not None and peer.name in found and peer.only_mpi not in kinds:
            has = [each.name for each in THREADS if each.only_mpi in kinds]
            raise UserError(
                f"{TITLES[kinds[0]]} has no peer {peer.name} (that is {TITLES[peer.only_mpi]}'s own thread). Give "
                f"--mpi {peer.only_mpi}, or --peers with {' or '.join(has)}."
            )
    return found


def threads(names: Sequence[str]) -> tuple[Peer, ...]:
    return tuple(peer for peer in THREADS if peer.name in names)


def chosen(
    text: str | None, kinds: Sequence[str], tests: int, policy: str | None, places: Sequence[str] = (CORES,)
) -> tuple[Peer, ...]:
    """The MPI alone, which sets the work, then tests and threads that were asked for, then Offpath at each of the
    places, and with another protection of the network."""
    found = names(text, kinds, PEERS, USUAL)
    tested = (Peer("tests", arguments=("--tests", str(tests))),) if "tests" in found else ()
    offpath = measuring.offpath_peer(policy)
    others = (offpath.protected(name) for name in PROTECTIONS if name in found)
    return (ALONE, *tested, *threads(found), *placements.peers(places, offpath), *others)
