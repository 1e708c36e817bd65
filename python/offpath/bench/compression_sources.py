# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath bench compression` compresses beside the fields that it makes: what applications hold, and files that
packages bring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from offpath.base import console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.launch import local, mpis

PATIENCE_S = 120.0
RANKS = 2
# What rank 0 of each holds at its end, in a few MiB.
APPS = {
    "fft3d": ["--n", "64", "--variables", "4", "--repeats", "1", "--work", "4"],
    "halo3d": ["--points", "96", "--variables", "1", "--sweeps", "50"],
    "bspmm": ["--tile", "64", "--tiles", "16", "--repeats", "1"],
    "minimd": ["--cells", "24", "--steps", "60"],
}
# Text and machine code, which Debian and others bring.
STANDARD = {
    "licences": ["/usr/share/common-licenses", "/usr/share/licenses"],
    "libc": ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6"],
}


def of_applications(folder: Path) -> Iterator[tuple[str, int]]:
    """Runs them; a file of doubles for each, and the bytes of a number."""
    for app, options in APPS.items():
        program = paths().apps / mpis.OPENMPI / app
        if not program.exists():
            console.note(f"{app} is left out: this build does not have it.")
            continue
        file = folder / app
        done = local.local_mpirun(mpis.OPENMPI, RANKS, [str(program), *options, "--field", str(file)],
                                   timeout=PATIENCE_S)  # fmt: skip
        if done.returncode != 0 or not file.exists():
            raise UserError(f"{app} did not end well (its field is to be measured). Run: {program} --help", 1)
        yield str(file), 8


def standard(folder: Path, size: int) -> Iterator[tuple[str, int]]:
    """A file of bytes for each kind that this machine has."""
    for name, places in STANDARD.items():
        found = next((Path(place) for place in places if Path(place).exists()), None)
        if found is None:
            console.note(f"{name} is left out: nothing of it is installed.")
            continue
        parts = sorted(part for part in found.iterdir() if part.is_file()) if found.is_dir() else [found]
        content = b""
        for part in parts:
            content += part.read_bytes()
            if len(content) >= size:
                break
        file = folder / name
        file.write_bytes(content[:size])
        yield str(file), 1
