# SPDX-License-Identifier: BSD-3-Clause
"""Which job a command starts, as far as a later run may be the same one again."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath.launch import local, mpis

RANKS_OPTION = re.compile(r"(?:-n|-np|--np|--n|--ntasks)(?:=?(\d+))?")
# Options of launchers whose values may be names of programs as well (node, true, test), with how many they take.
VALUES = {"mca": 2, "gmca": 2, "genv": 2, "env": 2} | dict.fromkeys(
    ("x", "map-by", "rank-by", "bind-to", "H", "host", "hosts", "w", "nodelist", "J", "job-name", "p", "partition", "A",
     "account", "C", "constraint"), 1
)  # fmt: skip
INTERPRETER = re.compile(r"(?:python|perl|ruby|julia|R|Rscript|bash|sh)[\d.]*")


@dataclass(frozen=True)
class Job:
    """What must be the same for a practice to be a good one again."""

    machine: str
    program: str
    launch: str


def job_of(command: Sequence[str]) -> Job:
    """The job that `command` starts, as typed."""
    first = 0
    if mpis.launcher_kind(command[0]):
        first = _first_program(command)
    cluster = os.environ.get("SLURM_CLUSTER_NAME", "")
    machine = ", ".join(filter(None, (local.processor(), f"{len(local.available_cores())} cores", cluster)))
    return Job(text(machine), text(program_name(command[first:])), text(_launch(command[:first])))


def text(word: str) -> str:
    """What a database takes: names of files may be no text."""
    return os.fsencode(word).decode(errors="replace")


def program_name(command: Sequence[str]) -> str:
    """Of an interpreter with what it runs."""
    name = Path(command[0]).name
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    return f"{name} {Path(script).name}" if INTERPRETER.fullmatch(name) and script else name


def _launch(words: Sequence[str]) -> str:
    """The launcher and its ranks: hosts and files may be others each time."""
    if not words:
        return ""
    ranks = os.environ.get("SLURM_NTASKS", "") if Path(words[0]).name == "srun" else ""
    for word, following in zip(words[1:], [*words[2:], ""]):
        if option := RANKS_OPTION.fullmatch(word):
            ranks = option[1] or following
    return " ".join(filter(None, (Path(words[0]).name, ranks and f"-n {ranks}")))


def _first_program(command: Sequence[str]) -> int:
    """Where what a launcher starts is named; 0: nothing looks like it."""
    values = 0
    for at, word in enumerate(command[1:], 1):
        if values > 0:
            values -= 1
        elif word.startswith("-"):
            values = VALUES.get(word.lstrip("-"), 0)
        elif shutil.which(word) is not None and not word.isdigit():
            return at
    return 0
