# SPDX-License-Identifier: BSD-3-Clause
"""A recording made by hand: two ranks on two nodes, and a check of Chrome's trace event format."""

import json
import struct

from offpath.trace import parts

PLACE = {"file": "/nowhere/app", "offset": 64}
MS = 1_000_000


def rank_lines(rank: int, late_ns: int = 0) -> list[dict]:
    """A blocking bcast on the host, an alltoall at the service behind 30 ms of work, one on the host, a receive."""
    start = 2 * MS + late_ns
    posted = {"comm": 0, "root": 0, **PLACE}
    return [
        {"format": "offpath-trace", "version": 1, "rank": rank, "ranks": 2, "host": f"node{rank}", "mpi": "mpich",
         "reason": "", "service_pid": 100 + rank, "zero_ns": 10**12},
        {"comm": 0, "members": [0, 1]},
        {"op": 0, "nth": 0, "kind": "ibcast", "bytes": 8, "blocking": True, "path": "host", "why": "blocking",
         "algorithm": "", "call": "bcast", "begin_ns": MS, "end_ns": start - MS // 2, **posted},
        {"op": 1, "nth": 1, "kind": "ialltoall", "bytes": 4 << 20, "path": "dpu", "why": "policy",
         "algorithm": "direct", "call": "ialltoall", "begin_ns": start, "end_ns": start + 10_000, **posted},
        {"op": 2, "nth": 2, "kind": "iallgather", "bytes": 1024, "path": "host", "why": "policy", "algorithm": "",
         "call": "iallgather", "begin_ns": start + 20_000, "end_ns": start + 30_000, **posted},
        {"served": 1, "status": 0, "seen_ns": start + 41 * MS, "posted_ns": start + 5000, "started_ns": start + 9000,
         "first_byte_ns": start + MS, "done_ns": start + 40 * MS, "last_peer": 1 - rank},
        {"wait": [1, 2], "call": "Waitall", "begin_ns": start + 30 * MS, "end_ns": start + 41 * MS, **PLACE},
        {"wait": [], "call": "Wait", "begin_ns": start + 42 * MS, "end_ns": start + 43 * MS, **PLACE},
        {"end_ns": start + 50 * MS},
    ]  # fmt: skip


def region_lines(lines: list[dict]) -> list[dict]:
    """Of rank_lines(), as they are written: "step" around the offloaded operation and the wait for it, "post" inside,
    and one that the program's end leaves open."""
    begin, end = lines[3]["begin_ns"] - 1000, lines[6]["end_ns"] + 1000
    post = {"region": "post", "thread": 0, "begin_ns": begin, "end_ns": lines[4]["end_ns"] + 500}
    step = {"region": "step", "thread": 0, "begin_ns": begin, "end_ns": end}
    last = {"region": "output", "thread": 0, "begin_ns": end + 3 * MS, "end_ns": lines[-1]["end_ns"], "left_open": True}
    return [*lines[:7], post, step, *lines[7:-1], last, lines[-1]]


def one_sided_lines(start: int, first: int = 10, count: int = 1, late_ns: int = 0) -> list[dict]:
    """Puts to rank 1, one after the other, at the service after `late_ns` more; a flush 10 ms after the first."""
    lines = []
    for number in range(first, first + count):
        begin = start + (number - first) * 20_000
        started = begin + 5000 + late_ns
        lines += [
            {"op": number, "nth": number, "kind": "put", "bytes": 8, "path": "dpu", "why": "policy", "algorithm": "",
             "call": "put", "begin_ns": begin, "end_ns": begin + 1000, "comm": 0, "root": 1, **PLACE},
            {"served": number, "status": 0, "seen_ns": started + 12 * MS, "posted_ns": begin + 500,
             "started_ns": started, "done_ns": started + 11 * MS, "last_peer": 1},
        ]  # fmt: skip
    numbers = list(range(first, first + count))
    flush = {"call": "Win_flush", "begin_ns": start + 10 * MS, "end_ns": start + 12 * MS, **PLACE}
    return [*lines, {"wait": numbers, **flush}]


def write_parts(folder, ranks=(0, 1), late_ns=3 * MS):
    """As two ranks write them; the second one is late."""
    files = []
    for rank in ranks:
        file = folder / f"rank.{rank:06}"
        file.write_bytes(part(rank_lines(rank, late_ns * rank)))
        files.append(file)
    return files


def part(lines: list[dict]) -> bytes:
    """As frontends/mpi/recording/part.cpp writes it."""
    out = [json.dumps(lines[0]).encode() + b"\n"]
    texts: dict[str, int] = {}
    sites: dict[tuple, int] = {}

    def add(tag: int, body: bytes, flags: int = 0, name: int = 0) -> None:
        body += bytes(-len(body) % 8)
        out.append(parts.HEAD.pack(tag, flags, name, len(body) // 8) + body)

    def text(value: str) -> int:
        if value not in texts:
            texts[value] = len(texts) + 1
            add(parts.TEXT, value.encode(), name=texts[value])
        return texts[value]

    def site(line: dict) -> int:
        place = line.get("file"), line.get("offset")
        if None in place:
            return 0
        if place not in sites:
            sites[place] = len(sites) + 1
            add(parts.SITE, parts.BODIES[parts.SITE].pack(sites[place], place[1]) + place[0].encode())
        return sites[place]

    def words(values: list[int]) -> bytes:
        return struct.pack(f"<{len(values)}Q", *values)

    for line in lines[1:]:
        if "members" in line:
            add(parts.COMMUNICATOR, words([line["comm"], *line["members"]]))
        elif "op" in line:
            flags = parts.BLOCKING * ("blocking" in line) | parts.DECIDED * ("path" in line)
            flags |= parts.OFFLOADED * (line.get("path") == "dpu")
            body = parts.BODIES[parts.OPERATION].pack(
                line["op"], line["begin_ns"], line["end_ns"], line["bytes"], site(line), line["comm"], line["root"],
                line["nth"], text(line["kind"]), text(line.get("why", "")), text(line.get("algorithm", "")),
                line.get("thread", 0),
            )  # fmt: skip
            values = [line["tag"] % (1 << 64)] if "tag" in line else line.get("sent_bytes", [])
            add(parts.OPERATION, body + words(values), flags, text(line["call"]))
        elif "served" in line:
            names = ("served", "seen_ns", "posted_ns", "started_ns", "first_byte_ns", "done_ns", "status", "last_peer")
            body = parts.BODIES[parts.SERVED].pack(*(line.get(name, 0) for name in names))
            add(parts.SERVED, body, parts.TIMES_KNOWN * ("done_ns" in line))
        elif "region" in line:
            body = words([line["begin_ns"], line["end_ns"], line["thread"]])
            add(parts.REGION, body, parts.LEFT_OPEN * ("left_open" in line), text(line["region"]))
        elif "call" in line:
            body = parts.BODIES[parts.WAIT].pack(
                line["begin_ns"], line["end_ns"], site(line), line.get("others", 0), line.get("thread", 0)
            )
            values = line["wait"] if "wait" in line else line["test"]
            add(parts.WAIT, body + words(values), parts.COMPLETE * ("wait" in line), text(line["call"]))
        else:
            add(parts.END, words([line["end_ns"], line.get("operations_left_out", 0), line.get("waits_left_out", 0)]))
    return b"".join(out)


def check_format(trace: dict) -> list[dict]:
    """What the trace event format asks for; returns the events. Slices of a track nest, flows come in order."""
    assert set(trace) >= {"traceEvents", "displayTimeUnit"}
    flow = {"name", "cat", "id", "ts", "pid", "tid"}
    needed = {"X": {"name", "ts", "dur", "pid", "tid"}, "M": {"name", "pid", "args"}, "s": flow, "t": flow, "f": flow}
    needed["C"] = {"name", "ts", "pid", "args"}
    events, last_ts, open_slices, flows = trace["traceEvents"], 0.0, {}, {}
    for event in events:
        assert set(event) >= needed[event["ph"]] | {"ph"}, event
        if event["ph"] == "M":
            continue
        assert event["ts"] >= last_ts, event
        last_ts = event["ts"]
        track = open_slices.setdefault((event["pid"], event.get("tid")), [])
        if event["ph"] == "X":
            assert event["dur"] >= 0
            while track and track[-1] <= event["ts"]:
                track.pop()
            assert not track or event["ts"] + event["dur"] <= track[-1] + 1e-3, f"overlaps: {event}"
            track.append(event["ts"] + event["dur"])
        elif event["ph"] in "stf":
            flows.setdefault(event["id"], []).append(event["ph"])
            assert track and track[-1] >= event["ts"], f"a flow's end outside of any slice: {event}"
    for phases in flows.values():
        assert phases in (["s", "f"], ["s", "t", "f"]), phases
    named = {event["pid"] for event in events if event["name"] == "process_name"}
    assert {event["pid"] for event in events} == named
    return events
