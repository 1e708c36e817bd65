# SPDX-License-Identifier: BSD-3-Clause
"""A rank's own file (frontends/mpi/recording/part.hpp), made into the lines of a trace or a profile.

A file that was cut short, as that of a rank that was killed, counts as far as it goes.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

HEAD = struct.Struct("<BBHI")
TEXT, SITE, COMMUNICATOR, OPERATION, SERVED, WAIT, END, REGION = range(1, 9)
BODIES = {
    SITE: struct.Struct("<2Q"),
    COMMUNICATOR: struct.Struct("<Q"),
    OPERATION: struct.Struct("<4Q2IiI4H"),
    SERVED: struct.Struct("<6QiI"),
    WAIT: struct.Struct("<2Q2IQ"),
    END: struct.Struct("<3Q"),
    REGION: struct.Struct("<3Q"),
}
# Kinds of operations that are no collectives; fetch: MPI_Fetch_and_op.
ONE_SIDED = frozenset(("put", "get", "accumulate", "fetch"))
MESSAGES = frozenset(("isend", "irecv"))  # root: the other one, -1 for anybody
BLOCKING, DECIDED, OFFLOADED = 1, 2, 4  # flags of an operation
TIMES_KNOWN = COMPLETE = LEFT_OPEN = 1  # of what a service did, of a wait, of a region


def read(file: Path) -> list[dict]:
    """The header first, which is empty in what is no such file. Nothing of a file that was cut in its header."""
    content = file.read_bytes()
    header, newline, rest = content.partition(b"\n")
    if not newline:
        return []
    try:
        head = json.loads(header)
    except ValueError:
        head = None
    return [head, *_Reader(rest).lines()] if isinstance(head, dict) else [{}]


class _Reader:
    def __init__(self, content: bytes):
        self._content = content
        self._texts: dict[int, str] = {}
        self._sites: dict[int, dict] = {}

    def lines(self) -> Iterator[dict]:
        at = 0
        while at + HEAD.size <= len(self._content):
            tag, flags, name, words = HEAD.unpack_from(self._content, at)
            at += HEAD.size
            end = at + 8 * words
            body = BODIES.get(tag)
            if end > len(self._content) or (body is not None and at + body.size > end):
                return
            if tag == TEXT:
                self._texts[name] = self._text(at, end)
            elif tag == SITE:
                number, offset = body.unpack_from(self._content, at)
                self._sites[number] = {"file": self._text(at + body.size, end), "offset": offset}
            elif body is not None:
                values = struct.unpack_from(f"<{(end - at - body.size) // 8}Q", self._content, at + body.size)
                yield LINES[tag](self, flags, name, body.unpack_from(self._content, at), list(values))
            at = end

    def _text(self, begin: int, end: int) -> str:
        return self._content[begin:end].rstrip(b"\0").decode(errors="replace")

    def _communicator(self, _flags: int, _name: int, fields: tuple, values: list) -> dict:
        return {"comm": fields[0], "members": values}

    def _operation(self, flags: int, name: int, fields: tuple, values: list) -> dict:
        number, begin_ns, end_ns, size, site, communicator, root, nth, kind, why, algorithm, thread = fields
        line = {"op": number, "kind": self._named(kind), "comm": communicator, "nth": nth, "bytes": size, "root": root}
        if flags & BLOCKING:
            line["blocking"] = True
        if flags & DECIDED:
            path = "dpu" if flags & OFFLOADED else "host"
            line |= {"path": path, "why": self._named(why), "algorithm": self._named(algorithm)}
        if values and line["kind"] in MESSAGES:
            line["tag"] = values[0] - (1 << 64 if values[0] >> 63 else 0)
        elif values:
            line["sent_bytes"] = values
        return line | self._call(name, begin_ns, end_ns, site, thread)

    def _served(self, flags: int, _name: int, fields: tuple, _values: list) -> dict:
        number, seen_ns, posted_ns, started_ns, first_byte_ns, done_ns, status, last_peer = fields
        line = {"served": number, "status": status, "seen_ns": seen_ns}
        if flags & TIMES_KNOWN:
            line |= {"posted_ns": posted_ns, "started_ns": started_ns}
            line |= {"first_byte_ns": first_byte_ns} if first_byte_ns else {}
            line |= {"done_ns": done_ns, "last_peer": last_peer}
        return line

    def _wait(self, flags: int, name: int, fields: tuple, values: list) -> dict:
        begin_ns, end_ns, site, others, thread = fields
        line = {"wait" if flags & COMPLETE else "test": values}
        if others:
            line["others"] = others
        return line | self._call(name, begin_ns, end_ns, site, thread)

    def _end(self, _flags: int, _name: int, fields: tuple, _values: list) -> dict:
        line = {"end_ns": fields[0]}
        return line | ({"operations_left_out": fields[1], "waits_left_out": fields[2]} if fields[1] else {})

    def _region(self, flags: int, name: int, fields: tuple, _values: list) -> dict:
        begin_ns, end_ns, thread = fields
        line = {"region": self._named(name), "thread": thread, "begin_ns": begin_ns, "end_ns": end_ns}
        return line | ({"left_open": True} if flags & LEFT_OPEN else {})

    def _call(self, name: int, begin_ns: int, end_ns: int, site: int, thread: int) -> dict:
        call = {"call": self._named(name), "begin_ns": begin_ns, "end_ns": end_ns, **self._sites.get(site, {})}
        return call | ({"thread": thread} if thread else {})

    def _named(self, number: int) -> str:
        return self._texts.get(number, "")


LINES = {
    COMMUNICATOR: _Reader._communicator,
    OPERATION: _Reader._operation,
    SERVED: _Reader._served,
    WAIT: _Reader._wait,
    END: _Reader._end,
    REGION: _Reader._region,
}
