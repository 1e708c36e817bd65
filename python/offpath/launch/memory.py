# SPDX-License-Identifier: BSD-3-Clause
"""What runs with an automatic policy have learned: a small database from which later runs of a program start.

A row is good practice for one *job*: this kind of machine (processor, cores, cluster), the program by its name, so that
another node of the cluster and another build know it, too, and how many ranks are launched by what. A practice is
believed for some months. A site may have a file of them for all its users. What cannot be read is said in one line and
left out: a run never fails for want of its memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from offpath.base import console, files
from offpath.base.errors import UserError
from offpath.base.paths import cache_folder
from offpath.launch import policy_table
from offpath.launch.job import Job, text

FORMAT = 2
LEAST_TURNS = 32  # of a key, before it is believed
KEPT_DAYS = 120
BUSY_TIMEOUT_S = 5.0
SITE_FILE = Path("/etc/offpath/practices.json")
ANY = "*"  # a practice of any program, or launch
COLUMNS = ("machine", "program", "launch", "range", "path", "host_ns", "dpu_ns", "turns", "seen")
NUMBERS = ("host_ns", "dpu_ns", "turns")
MOST_BYTES = 12 << 10  # of rows: the ranks take 16 KiB, with those of the machine's file
NODES = re.compile(r":nodes=(\d+)$")

Answer = TypeVar("Answer")


def file() -> Path:
    return cache_folder() / "policy.sqlite3"


def rows(job: Job) -> str | None:
    """Rows for OFFPATH_MPI_MEMORY; None when nothing is known or can be read.

    What the user's own runs have learned comes before what a site says, and what is of this job alone before what is
    of any."""
    known: dict[str, dict] = {}
    for practices in (_site(), _use(lambda database: _found(database, f"WHERE {_FRESH}"), [])):
        of_job = [each for each in practices if _is_of(each, job)]
        for each in sorted(of_job, key=lambda each: (each["program"] != ANY, each["launch"] != ANY)):
            known[each["range"]] = each
    if not known:
        return None
    found = ",".join(sorted(_as_many_as_fit(known.values()), key=_place))
    try:
        policy_table.parse([("memory", found)])
    except UserError as error:
        console.note(f"what earlier runs have learned is left out ({error}). Clear it with: offpath policy forget")
        return None
    return found


def _as_many_as_fit(practices: Iterable[dict]) -> Iterator[str]:
    """Rows of those; where they are too many, of those that were seen most."""
    bytes_left = MOST_BYTES
    for each in sorted(practices, key=lambda each: -each["turns"]):
        row = f"{each['range']}:{each['path']}"
        bytes_left -= len(row) + 1
        if bytes_left < 0:
            return
        yield row


def _place(row: str) -> tuple[int, str]:
    """Rows hold for so many nodes and more, and later ones win."""
    nodes = NODES.search(row.rpartition(":")[0])
    return (int(nodes[1]) if nodes else 1, row)


def _is_of(practice: dict, job: Job) -> bool:
    return all(practice[name] in (value, ANY) for name, value in vars(job).items())


def _site() -> list[dict]:
    if not os.path.exists(SITE_FILE):  # False, too, where we may not look
        return []
    try:
        return read_file(SITE_FILE)
    except UserError as error:
        console.note(f"what the site has learned is left out: {error}")
        return []


def read_file(file: Path) -> list[dict]:
    """Practices as write_file() has written them. Raises UserError, one line, for any other file."""
    return files.read_json(file, "list of practices", "Write one with: offpath policy export FILE", _practices)


def _practices(said: dict) -> list[dict]:
    found = [{column: each[column] for column in COLUMNS} for each in said["practices"]]
    json.dumps(found, ensure_ascii=False).encode()  # SQLite takes nothing but text
    if said["format"] != FORMAT or not all(map(_is_practice, found)):
        raise ValueError(f"it is not of format {FORMAT}")
    return found


def _is_practice(each: dict) -> bool:
    """Whether it is whole, and of what SQLite takes."""
    whole = all(type(each[name]) is (int if name in NUMBERS else str) for name in COLUMNS)
    return whole and all(0 <= each[name] < 1 << 63 for name in NUMBERS) and each["path"] in ("host", "dpu")


def write_file(file: Path) -> int:
    """Writes all practices. Returns how many."""
    known = practices()
    try:
        files.write_json(file, {"format": FORMAT, "practices": known})
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}). Name another file.") from None
    return len(known)


def take_in(known: Sequence[dict]) -> int:
    """Adds practices, such as those of another machine; newer ones win. Returns how many are new or newer."""
    with _opened(create=True) as database:
        if database is None:
            return 0
        return database.executemany(
            f"INSERT INTO practice VALUES ({', '.join('?' * len(COLUMNS))}) "
            "ON CONFLICT DO UPDATE SET path = excluded.path, host_ns = excluded.host_ns, dpu_ns = excluded.dpu_ns, "
            "turns = excluded.turns, seen = excluded.seen WHERE excluded.seen > seen",
            [tuple(each[column] for column in COLUMNS) for each in known],
        ).rowcount


def keep(job: Job, ranks: Sequence[dict]) -> None:
    """Takes over what the ranks' statistics say."""
    learned = learned_of(ranks)
    if not learned:
        return

    def write(database: sqlite3.Connection) -> None:
        database.execute(f"DELETE FROM practice WHERE NOT {_FRESH}")
        database.executemany(
            f"INSERT OR REPLACE INTO practice VALUES ({', '.join('?' * (len(COLUMNS) - 1))}, datetime('now'))",
            [(job.machine, job.program, job.launch, *each.values()) for each in learned],
        )

    _use(write, None)


def learned_of(ranks: Sequence[dict]) -> list[dict]:
    """What is of no job in the COLUMNS, by range, as OFFPATH_STATS_FILE names it (ialltoall:512K-1M:nodes=2): of the
    team that knows most; only where both paths were seen, and not of a lost service."""
    best: dict[str, dict] = {}
    for rank in ranks:
        for name, entry in rank.get("learned", {}).items():
            turns = entry["turns_count"]
            times = {key: entry[key] for key in ("host_ns", "dpu_ns")}
            believed = turns >= LEAST_TURNS and all(times.values()) and entry["why"] != "lost"
            if believed and (name not in best or turns > best[name]["turns"]):
                best[name] = {"range": name, "path": entry["path"], **times, "turns": turns}
    return list(best.values())


_FRESH = f"seen > datetime('now', '-{KEPT_DAYS} days')"


def practices() -> list[dict]:
    """All of them, newest first. Raises UserError when the database cannot be read."""

    with _opened() as database:
        return [] if database is None else _found(database, "ORDER BY seen DESC, range")


def _found(database: sqlite3.Connection, which: str) -> list[dict]:
    """But for damaged ones."""
    rows = database.execute(f"SELECT {', '.join(COLUMNS)} FROM practice {which}")
    return [each for row in rows if _is_practice(each := dict(zip(COLUMNS, row)))]


def forget(program: str | None) -> int:
    """Forgets what was learned of a program, by its name or path, or everything. Returns how many that were."""
    if program is None:
        try:
            count = len(practices())
        except UserError:
            count = 0  # damaged: it goes as well
        file().unlink(missing_ok=True)
        return count
    with _opened() as database:
        if database is None:
            return 0
        names = (text(program), text(Path(program).name))
        return database.execute("DELETE FROM practice WHERE program IN (?, ?)", names).rowcount


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
    if not create and not os.path.exists(where):
        yield None
        return
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(where, timeout=BUSY_TIMEOUT_S)) as database, database:
            if _version(database) != FORMAT:
                _make(database)
            yield database
    except (sqlite3.Error, OSError) as error:
        raise UserError(
            f"{where} is of no use ({error}), so nothing is remembered. Clear it with: offpath policy forget"
        ) from None


def _version(database: sqlite3.Connection) -> int:
    return database.execute("PRAGMA user_version").fetchone()[0]


def _make(database: sqlite3.Connection) -> None:
    """As a whole or not at all, and once: several runs may come here."""
    database.execute("BEGIN IMMEDIATE")
    version = _version(database)
    if version == FORMAT:
        return
    if version == 1:  # by host name, path and size
        database.execute("DROP TABLE practice")
    elif version != 0 or database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] != 0:
        raise sqlite3.DatabaseError(f"its format is {version}, not {FORMAT}")
    database.execute(
        "CREATE TABLE practice (machine TEXT, program TEXT, launch TEXT, range TEXT, "
        "path TEXT, host_ns INTEGER, dpu_ns INTEGER, turns INTEGER, seen TEXT, "
        "PRIMARY KEY (machine, program, launch, range))"
    )
    database.execute(f"PRAGMA user_version = {FORMAT}")
