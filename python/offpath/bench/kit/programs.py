# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are measured by themselves, without an MPI: what they print, or why they failed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from offpath.base.errors import UserError
from offpath.bench.kit.turns import FAILED

PATIENCE_S = 600.0
BAD_ARGUMENTS = 2  # exit status of our programs
_ERROR = re.compile(r"^(?:\[.*?\]:? ?)?((?:[\w.]+(?:Error|Exception)\b|offpath: ).*)", re.MULTILINE)


def output(argv: Sequence[object], env: Mapping[str, str] | None = None) -> bytes:
    """Raises UserError: with what the program says of its arguments if it knows them better than we do, else with its
    last words."""
    words = list(map(str, argv))
    name = Path(words[0]).name
    done = subprocess.run(words, env={**os.environ, **(env or {})}, capture_output=True, timeout=PATIENCE_S)
    if done.returncode == 0:
        return done.stdout
    said = last_words(name, (done.stderr or done.stdout).decode(errors="replace"))
    if done.returncode == BAD_ARGUMENTS:
        raise UserError(said)
    raise UserError(f"{name} failed ({said}; exit {done.returncode}). Is it built (make build), or the machine busy?",
                    FAILED)  # fmt: skip


def json_output(argv: Sequence[object]) -> Any:
    return json.loads(output(argv))


def last_words(name: str, text: str | None) -> str:
    lines = (text or "").strip().splitlines() or ["it said nothing"]
    return lines[-1].removeprefix(f"{name}: ")


def problem(out: str, err: str) -> str:
    """Of a Python program under a launcher, which says a lot after what went wrong: the first error, and a file, which
    stays, with all of it."""
    text = "\n".join(part.strip() for part in (out, err) if part.strip())
    first = _ERROR.search(err) or _ERROR.search(out)
    with tempfile.NamedTemporaryFile("w", prefix="offpath-failed-", suffix=".txt", delete=False) as file:
        file.write(text + "\n")
    return f"{first[1] if first else last_words('', err or out)} (all that it said: {file.name})"
