# SPDX-License-Identifier: BSD-3-Clause
"""What runs with an automatic policy have learned: a small database from which later runs of a program start.

A row is good practice for one *job*: this machine (host name and cores), the program (path and size) and how it is
launched (the words before the program). What cannot be read is said in one line and left out: a run never fails for
want of its memory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from offpath.base import console
from offpath.base.errors import UserError
from offpath.launch import mpis, policy_table

FORMAT = 1
LEAST_TURNS = 32  # of a key, before it is believed
BUSY_TIMEOUT_S = 5.0

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Job:
    """What must be the same for a practice to be a good one again."""

    machine: str
    program: str
    launch: str


@dataclass(frozen=True)
class Practice:
    """One range of one collective, as OFFPATH_STATS_FILE names it (ialltoall:512K-1M:nodes=2)."""

    range: str
    path: str
    host_ns: int
    dpu_ns: int
    turns: int


def file() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "offpath" / "policy.sqlite3"


def job_of(command: Sequence[str]) -> Job:
    """The job that `command` starts, as typed."""
    first = 0
    if mpis.launcher_kind(command[0]):
        found = (i for i, word in enumerate(command) if i > 0 and _is_program(word))
        first = next(found, 0)
    program = shutil.which(command[first]) or command[first]
    size = os.path.getsize(program) if os.path.exists(program) else 0
    machine = f"{socket.gethostname()}, {len(os.sched_getaffinity(0))} cores"
    return Job(machine, f"{os.path.realpath(program)} ({size} bytes)", " ".join(command[:first]))


def rows(job: Job) -> str | None:
    """Rows for OFFPATH_MPI_MEMORY; None when nothing is known or can be read."""

    def read(database: sqlite3.Connection) -> list[str]:
        found = database.execute(
            "SELECT range, path FROM practice WHERE machine = ? AND program = ? AND launch = ? ORDER BY range",
            (job.machine, job.program, job.launch),
        )
        return [f"{what}:{path}" for what, path in found]

    known = _use(read, [])
    if not known:
        return None
    try:
        policy_table.parse([("memory", ",".join(known))])
    except UserError as error:
        console.note(f"what earlier runs have learned is left out ({error}). Clear it with: offpath policy forget")
        return None
    return ",".join(known)


def keep(job: Job, ranks: Sequence[dict]) -> None:
    """Takes over what the ranks' statistics say."""
    learned = learned_of(ranks)
    if not learned:
        return

    def write(database: sqlite3.Connection) -> None:
        database.executemany(
            "INSERT OR REPLACE INTO practice VALUES (?, ?, ?, ?, ?, ?, ?, ?, datetime('now'))",
            [
                (job.machine, job.program, job.launch, each.range, each.path, each.host_ns, each.dpu_ns, each.turns)
                for each in learned
            ],
        )

    _use(write, None)


def learned_of(ranks: Sequence[dict]) -> list[Practice]:
    """By range, of the team that knows most; only where both paths were seen, and not of a lost service."""
    best: dict[str, Practice] = {}
    for rank in ranks:
        for name, entry in rank.get("learned", {}).items():
            each = Practice(name, entry["path"], entry["host_ns"], entry["dpu_ns"], entry["turns_count"])
            believed = each.turns >= LEAST_TURNS and each.host_ns and each.dpu_ns and entry["why"] != "lost"
            if believed and (name not in best or each.turns > best[name].turns):
                best[name] = each
    return list(best.values())


def practices() -> list[dict]:
    """All of them, newest first. Raises UserError when the database cannot be read."""

    def read(database: sqlite3.Connection) -> list[dict]:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM practice ORDER BY seen DESC, range")]

    with _opened() as database:
        return [] if database is None else read(database)


def forget(program: str | None) -> int:
    """Forgets what was learned of a program (its path), or everything. Returns how many practices that were."""
    if program is None:
        try:
            count = len(practices())
        except UserError:
            count = 0  # damaged: it goes as well
        file().unlink(missing_ok=True)
        return count
    path = os.path.realpath(shutil.which(program) or program)
    with _opened() as database:
        if database is None:
            return 0
        pattern = path.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_") + " (%"
        return database.execute("DELETE FROM practice WHERE program LIKE ? ESCAPE '\\'", (pattern,)).rowcount


def _use(task: Callable[[sqlite3.Connection], Answer], otherwise: Answer) -> Answer:
    try:
        with _opened(create=True) as database:
            return otherwise if database is None else task(database)
    except UserError as error:
        console.note(str(error))
        return otherwise


@contextlib.contextmanager
def _opened(create: bool = False) -> Iterator[sqlite3.Connection | None]:
    """The database in one transaction; None when there is none. Raises UserError when it is not one of ours."""
    where = file()
    if not create and not where.exists():
        yield None
        return
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(where, timeout=BUSY_TIMEOUT_S)) as database, database:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS practice (machine TEXT, program TEXT, launch TEXT, range TEXT, "
                    "path TEXT, host_ns INTEGER, dpu_ns INTEGER, turns INTEGER, seen TEXT, "
                    "PRIMARY KEY (machine, program, launch, range))"
                )
                database.execute(f"PRAGMA user_version = {FORMAT}")
            elif version != FORMAT:
                raise sqlite3.DatabaseError(f"its format is {version}, not {FORMAT}")
            yield database
    except (sqlite3.Error, OSError) as error:
        raise UserError(
            f"{where} is of no use ({error}), so nothing is remembered. Clear it with: offpath policy forget"
        ) from None


def _is_program(word: str) -> bool:
    """Looks like what a launcher starts, not like the value of an option of it."""
    return not word.startswith("-") and shutil.which(word) is not None and not word.isdigit()
