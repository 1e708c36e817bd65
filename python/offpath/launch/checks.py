# SPDX-License-Identifier: BSD-3-Clause
"""What a user has set for a run, checked before the job starts: a rank could only say it after MPI_Init."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping

from offpath.base import config, console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.launch import policy_table

# What the service takes, which refuses to start with anything else: then all would be native.
NUMBERS = {
    "OFFPATH_SERVICE_WORKERS": (1, 64), "OFFPATH_FABRIC_CHUNK_BYTES": (4096, 16 << 20),
    "OFFPATH_MULTICAST_RATE": (0, 1 << 44), "OFFPATH_MULTICAST_CHAINS": (0, 64),
    "OFFPATH_TASK_EXECUTORS": (0, 64), "OFFPATH_TASK_ROOM_BYTES": (8 << 20, 1 << 44),
    "OFFPATH_TASK_MEMORY_BYTES": (0, 1 << 46), "OFFPATH_TASK_CANCEL_MS": (0, 3600000),
}  # fmt: skip


def settings(policy: str | None, cores: str | None) -> None:
    """Raises UserError for rows or a list of cores that no rank would understand, given here or in the environment."""
    inherited = None if policy else os.environ.get("OFFPATH_POLICY")
    for source, rows in (("--policy", policy), ("OFFPATH_POLICY", inherited)):
        rows = policy_table.split_automatic(rows)[1]
        if rows and paths().policy_program.exists():
            policy_table.parse([(source, rows)])
    core_list(cores or os.environ.get("OFFPATH_SERVICE_CORES"))
    compression(os.environ.get("OFFPATH_COMPRESS"))


def numbers(environ: Mapping[str, str] = os.environ) -> None:
    """Raises UserError for one that the service does not take."""
    for name, (low, high) in NUMBERS.items():
        value = environ.get(name)
        if value and not (re.fullmatch("[0-9]+", value) and low <= int(value) <= high):
            raise UserError(
                f"{name}='{value}' is not a whole number from {low} to {high} (no service would start). Correct it."
            )


def core_list(cores: str | None) -> None:
    """Raises UserError unless it is one, or none is given."""
    if cores and not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", cores):
        raise UserError(f"'{cores}' is not a list of cores. Write it like 2,3 or 4-7.")


def compression(wish: str | None) -> str | None:
    """Raises UserError unless the service understands it, or nothing is wished."""
    option = "(level=([1-9]|1[0-9]|2[0-2])|shuffle=[1248])"
    number = r"(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?"
    lossless = f"off|auto|sample|(lz4|zstd|deflate|zlib)(:{option}(,{option})*)?"
    lossy = f"(zfp|sz3):(abs|rel)=(?P<bound>{number})(,reductions)?"
    found = re.fullmatch(f"{lossless}|{lossy}", wish) if wish else None
    if wish and (found is None or (found["bound"] and float(found["bound"]) <= 0)):
        raise UserError(
            f"'{wish}' is no compression. Write off, auto, lz4, zstd, deflate or zlib, the last four also with "
            ":level=1 to 22 and shuffle=2, 4 or 8, like zstd:level=3,shuffle=8; or zfp or sz3 with the largest error "
            "that numbers may have, like zfp:abs=1e-6 or sz3:rel=1e-4, and ,reductions if those may lose something, "
            "too; or sample, which compresses nothing and says what that would save."
        )
    return wish


def note_misspelt() -> None:
    """One line about variables that nothing reads."""
    unknown = config.unknown()
    if not unknown:
        return
    known = [setting.name for setting in config.SETTINGS]
    said = []
    for name in unknown:
        close = difflib.get_close_matches(name, known, 1)
        said.append(name + (f" (perhaps {close[0]})" if close else ""))
    console.note(f"nothing reads {', '.join(said)}. See: offpath info")
