# SPDX-License-Identifier: BSD-3-Clause
"""What compression would make of a run: a machine whose services compress what leaves for other nodes."""

from __future__ import annotations

import copy
import re

from offpath.base.errors import UserError

# ns for a byte, each way, on a plain server's core, of numbers (docs/performance/codecs.md).
# A machine file may have its own.
DEFAULTS = {
    "lz4": {"encode_ns_per_byte": 0.5, "decode_ns_per_byte": 0.1},
    "zstd": {"encode_ns_per_byte": 1.4, "decode_ns_per_byte": 0.2},
    "deflate": {"encode_ns_per_byte": 3.2, "decode_ns_per_byte": 0.8},
    "zlib": {"encode_ns_per_byte": 3.2, "decode_ns_per_byte": 0.8},
    "zfp": {"encode_ns_per_byte": 7.0, "decode_ns_per_byte": 3.5},
    "sz3": {"encode_ns_per_byte": 2.5, "decode_ns_per_byte": 0.6},
}


def parse(text: str) -> tuple[str, float]:
    """CODEC=RATIO, like lz4=2.5: what `--compress sample` or a run with that codec has said."""
    found = re.fullmatch(r"(\w+)=(\d+(?:\.\d*)?)", text)
    if found is None or found[1] not in DEFAULTS or not 1 <= float(found[2]) <= 1000:
        raise UserError(
            f"'{text}' is no codec with its ratio. Write it like lz4=2.5, with {', '.join(DEFAULTS)} and 1 to 1000."
        )
    return found[1], float(found[2])


def changed(machine: dict, codec: str, ratio: float) -> dict:
    """The machine, compressing all that leaves for other nodes."""
    result = copy.deepcopy(machine)
    speeds = machine.get("codecs", {}).get(codec, DEFAULTS[codec])
    result["compression"] = {"left": 1 / ratio} | speeds
    return result
