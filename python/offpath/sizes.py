# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of bytes as a person writes and reads them."""

import re

from offpath.errors import UserError

MAX_BYTES = 1 << 30
_SIZE = re.compile(r"^(\d+)([kmKM]?)(?:i?[bB])?$")
_UNITS = {"": 1, "k": 1024, "m": 1024**2}


def parse_sizes(text: str) -> tuple[int, ...]:
    """Bytes of "64K,1M,300". Raises UserError for anything else."""
    sizes = []
    for word in text.split(","):
        match = _SIZE.match(word.strip())
        size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
        if not 1 <= size <= MAX_BYTES:
            raise UserError(f"'{word}' is not a size. Give bytes from 1 to 1 GiB, like 65536, 256K or 4M.")
        sizes.append(size)
    return tuple(sizes)


def size_text(size: int) -> str:
    for unit, name in ((1024**2, "MiB"), (1024, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"
