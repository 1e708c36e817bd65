# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, numbers of bytes, rates, and times, as a person writes and reads them."""

import re

from offpath.base.errors import UserError

MAX_BYTES = 1 << 30
_SIZE = re.compile(r"^(\d+)([kKmMgGtT]?)(?:i?[bB])?$")
_RATE = re.compile(r"^(\d+(?:\.\d+)?)([kmgt])bit$")
_RATE_UNITS = {"t": 10**12, "g": 10**9, "m": 10**6, "k": 10**3}
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


def parse_sizes(text: str) -> tuple[int, ...]:
    """Bytes of "64K,1M,300". Raises UserError for anything else."""
    return tuple(parse_size(word, MAX_BYTES) for word in text.split(","))


def parse_size(text: str, most: int) -> int:
    """Bytes of "64K". Raises UserError for anything else."""
    match = _SIZE.match(text.strip())
    size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if not 1 <= size <= most:
        raise UserError(f"'{text}' is not a size. Give bytes from 1 to {size_text(most)}, like 65536, 256K or 4M.")
    return size


def parse_numbers(text: str, option: str, least: int = 1, most: int = 1 << 30) -> list[int]:
    """The numbers in "1,3", each once. Raises UserError for others."""
    found = list(dict.fromkeys(word.strip() for word in text.split(",")))
    if not all(word.isdecimal() and least <= int(word) <= most for word in found):
        to = f"to {most}" if most < 1 << 30 else "on"
        raise UserError(f"{option} {text} is not usable (each is a whole number from {least} {to}). Give some like "
                        f"{least},{least + 1}.")  # fmt: skip
    return list(map(int, found))


def parse_rate(text: str, least: str = "1kbit", most: str = "1.6tbit", whose: str = "") -> int:
    """Bits per second of a rate such as 250mbit. whose: limits these are. Raises UserError for anything else."""
    rate = _bits(text)
    if not _bits(least) <= rate <= _bits(most):
        limits = f"{whose} {least} to {most}".strip()
        raise UserError(f"'{text}' is not a link rate. Give one from {limits}, such as 250mbit or 1gbit.")
    return rate


def _bits(text: str) -> int:
    match = _RATE.match(text.strip().lower())
    return round(float(match[1]) * _RATE_UNITS[match[2]]) if match else 0


def rate_text(rate: int) -> str:
    for unit, bits in _RATE_UNITS.items():
        if rate >= bits:
            return f"{rate / bits:g}{unit}bit"
    return f"{rate}bit"


def size_text(size: int) -> str:
    for unit, name in ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def rough_size_text(count: float) -> str:
    """Of measured amounts, where the last byte does not matter."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def seconds(ns: float) -> str:
    for unit, name in ((1e9, "s"), (1e6, "ms")):
        if ns >= unit:
            return f"{ns / unit:.3g} {name}"
    return f"{ns / 1e3:.3g} us"


def traded(core_ns: float, node_ns: float) -> str:
    """What offloading takes, and saves: processor time of all, and time of the run times its nodes."""
    takes = f"takes {abs(core_ns) / 1e9:.3g} core-s {'more' if core_ns >= 0 else 'less'}"
    return f"{takes}, {'saves' if node_ns >= 0 else 'loses'} {abs(node_ns) / 1e9:.3g} node-s"


def saved_time(ns: float) -> str:
    """What compression saved on links, or cost: an estimate by the rule of auto; nothing where no link was known."""
    if not ns:
        return ""
    return f"by estimate links were busy {seconds(abs(ns))} {'less' if ns > 0 else 'longer'}"


def ms_text(ns: float) -> str:
    value = ns / 1e6
    return f"{value:.{3 if value < 1 else 2 if value < 100 else 1}f}"
