# SPDX-License-Identifier: BSD-3-Clause
"""init_process_group for whatever started the ranks."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch.distributed

from offpath.api.failures import ArgumentError
from offpath.base.paths import runtime_folder
from offpath.rendezvous.launchers import Place, find_place
from offpath.torch.process_group import NAME

_TIMEOUT = timedelta(minutes=30)  # torch's own


def init_process_group(backend: str = NAME, timeout: timedelta = _TIMEOUT, **more: Any) -> None:
    """torch.distributed.init_process_group for ranks that torchrun, Slurm or mpirun has started.

    Where ranks of several nodes were started by mpirun, MASTER_ADDR and MASTER_PORT name rank 0's node and a free port
    of it. Raises ArgumentError where they are needed and missing.
    """
    place = find_place()
    torch.distributed.init_process_group(
        backend, store=_store(place, timeout), rank=place.rank, world_size=place.size, timeout=timeout, **more
    )


def _store(place: Place, timeout: timedelta) -> Any:
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if host and port:
        # Ranks of one start share torchrun's store; another start of the same job must not read its keys.
        count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        serves = place.rank == 0 and not agent
        store = torch.distributed.TCPStore(host, int(port), place.size, serves, timeout)
        return torch.distributed.PrefixStore(f"start-{count}", store)
    if place.is_local:
        return torch.distributed.FileStore(str(runtime_folder() / f"torch-{place.job}"), place.size)
    if place.address is None:
        raise ArgumentError(
            f"{place.launcher} does not say where rank 0 is (the ranks are on several nodes). Set MASTER_ADDR to its "
            "node and MASTER_PORT to a free port."
        )
    return torch.distributed.TCPStore(*place.address, place.size, place.rank == 0, timeout)
