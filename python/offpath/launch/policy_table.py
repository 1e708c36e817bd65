# SPDX-License-Identifier: BSD-3-Clause
"""The policy as the ranks see it: the measured rows, this machine's tuned file, OFFPATH_POLICY.

Texts are read by the product's own parser (the program offpath-policy), so what is accepted here is accepted there.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath.base.errors import UserError
from offpath.base.files import readable
from offpath.base.paths import built, config_folder, paths

FILE_VARIABLE = "OFFPATH_POLICY_FILE"
NO_FILE = "none"
AUTOMATIC = "auto"
MEASURED = "measured"


@dataclass(frozen=True)
class Collective:
    name: str
    irregular: bool  # its rows mean bytes of one block between two ranks
    algorithms: tuple[str, ...]  # it knows, but for "default"
    defaults: tuple[tuple[int, str], ...]  # what "default" stands for: (from this size on, algorithm), ascending


@dataclass(frozen=True)
class Table:
    rows: list[dict]  # as offpath-policy prints them, "source" a name; later rows win
    collectives: list[Collective]

    def texts(self, source: str) -> list[str]:
        return [row["text"] for row in self.rows if row["source"] == source]


def parse(texts: Sequence[tuple[str, str]] = ()) -> Table:
    """The measured rows and those of each (source, text). Raises UserError that names the source of a bad text."""
    given = (text.replace("\0", "\N{REPLACEMENT CHARACTER}") for _, text in texts)  # of a damaged file
    command = [str(built(paths().policy_program)), *given]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace")
    answer = json.loads(result.stdout)
    sources = [MEASURED, *(source for source, _ in texts)]
    if "error" in answer:
        raise UserError(f"{sources[answer['source']]}: {answer['error']}")
    rows = [row | {"source": sources[row["source"]]} for row in answer["rows"]]
    known = [
        Collective(
            each["name"],
            each["irregular"],
            tuple(each["algorithms"][1:]),
            tuple((step["from_bytes"], step["algorithm"]) for step in each["defaults"]),
        )
        for each in answer["collectives"]
    ]
    return Table(rows, known)


def default_file() -> Path:
    return config_folder() / "policy"


def tuned_file(chosen: str | None) -> Path | None:
    """The policy file of this machine: `chosen`, or the default one if we can read it; None when there is none.

    Raises UserError when a chosen one cannot be read.
    """
    if chosen == NO_FILE:
        return None
    if not chosen:
        return default_file() if readable(default_file()) else None
    if not readable(Path(chosen)):
        raise UserError(
            f"The policy file {chosen} cannot be read (its rows would be missing). Run offpath tune, or give none."
        )
    return Path(chosen)


def sources(policy: str | None, chosen_file: str | None) -> list[tuple[str, str]]:
    """(source, text) of what overrides the measured rows, in the order in which it does."""
    found = []
    file = tuned_file(chosen_file)
    if file:
        found.append((str(file), file.read_text(errors="replace")))
    if policy:
        found.append(("OFFPATH_POLICY", policy))
    return found


def split_automatic(policy: str | None) -> tuple[bool, str | None]:
    """Whether the word auto is among the rows, and the rows without it."""
    words = [word.strip() for word in (policy or "").split(",")]
    if AUTOMATIC not in words:
        return False, policy
    return True, ",".join(word for word in words if word != AUTOMATIC)


def advice(chosen_file: str | None, remembered: str | None) -> str | None:
    """OFFPATH_MPI_MEMORY: the machine's file, then what was learned of the program, whose rows win."""
    return ",".join(text for text in (for_ranks(None, chosen_file), remembered) if text) or None


def for_ranks(policy: str | None, chosen_file: str | None) -> str | None:
    """OFFPATH_POLICY for the ranks, which read no file: the file's rows, then `policy`, whose rows win."""
    file = tuned_file(chosen_file)
    if file is None:
        return policy
    rows = parse([(str(file), file.read_text(errors="replace"))]).texts(str(file))
    return ",".join([*rows, *([policy] if policy else [])]) or None
