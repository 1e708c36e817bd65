# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench worker`: what a service's worker moves per second inside this machine, beside memcpy."""

from __future__ import annotations

from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.paths import paths
from offpath.base.sizes import parse_sizes
from offpath.bench.kit import Benchmark, Case, Site, Table, options, programs, rows, turns
from offpath.places import asked, comparison

WAYS = ("near", "workers", "sockets")
SECURITY = ("auth", "encrypt", "user-data-unprotected")
# What says which row or message it is; the rest is measured.
KEYS = ("way", "security", "bytes", "workers_count")
BENCHMARK = Benchmark([
    Table("What workers move inside this machine", [
        ("way", lambda row: " ".join(filter(None, (row["way"], row["security"])))), ("size", "{bytes:size}"),
        ("GB/s", "{moved_bytes_per_s:giga}"), ("copies", "{copies_per_byte:.2f}"),
        ("memcpy GB/s", "{memcpy_bytes_per_s:giga}"), ("ratio", "{memcpy_ratio:.2f}"),
        ("min-max", "{memcpy_ratio_min:.2f}-{memcpy_ratio_max:.2f}"),
    ]),
    Table("Short messages over sockets", [
        ("security", "{security}"), ("bytes", "{bytes}"), ("ns each", "{message_ns:.0f}"),
    ], of="messages"),
])  # fmt: skip

app = commands.alone()


@app.command()
def worker_command(
    ways: Annotated[str, typer.Option(help="Between ranks of one worker (near), of two, of two services.")] = (
        "near,workers,sockets"
    ),
    security: Annotated[str, typer.Option(help="Of sockets: auth, encrypt, user-data-unprotected.")] = "auth",
    sizes: Annotated[str, typer.Option(help="Bytes of a block.")] = "64K,256K,1M,4M,16M",
    runs: asked.Runs = 3,
    milliseconds: Annotated[int, typer.Option(min=1, max=60000, help="Length of each measurement, about.")] = 300,
    json_file: options.JsonFile = None,
) -> None:
    """Measure what a worker of the service moves per second inside this machine: two ranks exchange blocks that lie in
    shared memory, out of 64 MiB each way.

    near: one worker serves both. workers: two workers of one service. sockets: two services, over the loopback device.
    copies is how often each byte is copied, counted at ports and sockets; memcpy what as many threads copy of the same
    blocks; ratio moved x copies / memcpy: 1 is a worker that does nothing but copy. Over sockets short messages are
    timed, too. It wants two cores with nothing else on them.

    Example:

        offpath bench worker --security auth,encrypt --json worker.json
    """
    argv = [paths().tool("offpath-worker"), "--milliseconds", milliseconds]
    argv += ["--ways", ",".join(options.names(ways, WAYS, "a way"))]
    argv += ["--security", ",".join(options.names(security, SECURITY, "a security"))]
    argv += ["--sizes", ",".join(map(str, parse_sizes(sizes)))]
    options.check_files(json_file)
    case = Case({}, lambda _: programs.json_output(argv))
    meta = comparison.base_meta([]) | turns.measure([Site([[case]])], runs)
    tables = {name: _over_launches([launch[name] for launch in case.launches]) for name in ("rows", "messages")}
    BENCHMARK.deliver({"meta": meta, **tables}, json_file)


def _over_launches(launches: list[list[dict]]) -> list[dict]:
    """A program that finds a wrong block ends with an error."""
    return [
        rows.over_launches([row | {"verified": True} for row in same], [name for name in same[0] if name not in KEYS])
        for same in zip(*launches)
    ]
