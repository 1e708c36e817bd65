# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench compression`: what the service's codecs make of scientific data, and how fast."""

from __future__ import annotations

import time
import zlib
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, handover
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import parse_sizes
from offpath.bench import compression_sources, compression_transfers
from offpath.bench.kit import Benchmark, Table, options, programs
from offpath.places import asked, comparison

BASELINE = "zlib, one shot"


def _method(row: dict) -> str:
    return row["method"] + ("" if row["kept"] or row["method"] == BASELINE else ", new")


BENCHMARK = Benchmark([
    Table("Compression on one core (GB/s in and out)", [
        ("field", "{field}"), ("method", _method), ("chunk", "{chunk_bytes:size}"), ("ratio", "{ratio:.2f}"),
        ("GB/s", "{encode_bytes_per_s:giga}"), ("out", "{decode_bytes_per_s:giga}"),
        ("us, first", lambda row: f"{row['chunk_ns'] / 1e3:.0f}, {row['first_chunk_ns'] / 1e3:.0f}"),
        ("error", lambda row: f"{row['largest_error']:.1g}" if row.get("largest_error") else ""),
    ], keys=3),
])  # fmt: skip

app = commands.alone()


@app.command()
def compression_command(
    size: Annotated[str, typer.Option(help="Bytes of each field.")] = "8M",
    chunks: Annotated[str, typer.Option(help="Bytes that are compressed at a time.")] = "4K,56K",
    file: Annotated[Optional[Path], typer.Option(help="A file of doubles to measure, too.")] = None,
    applications: Annotated[
        bool, typer.Option("--applications", help="Run fft3d, halo3d, bspmm and minimd, and measure what they hold.")
    ] = False,
    standard: Annotated[
        bool, typer.Option("--standard", help="Measure text and machine code that packages bring, too.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="The best of so many is taken.")] = 3,
    rates: Annotated[
        Optional[str],
        typer.Option(help="Measure transfers in a lab instead, on links of these rates, like 100mbit,250mbit,1gbit."),
    ] = None,
    transfers: Annotated[str, typer.Option(help="With --rates: bytes of each collective.")] = "1M,4M",
    collectives: Annotated[
        str, typer.Option(help="With --rates: these. ibcast is one block that goes from one node to the other.")
    ] = "ialltoall,iallgather",
    runs: asked.Runs = 3,
    json_file: options.JsonFile = None,
) -> None:
    """Compress what programs send, as the service does, on one core: how much is left, and GB/s each way.

    velocity, halo and tiles are doubles as fft3d, halo3d and bspmm send them, single is velocity in floats. Contexts
    and buffers are kept from chunk to chunk, as in the service; "new" is the same with new ones for each chunk. The
    baseline is zlib on the whole field at once, at its default level. Lossy codecs are shown with two bounds, relative
    to the distance between the largest and the smallest number of a piece.

    "us, first": what compressing a chunk takes, and the first one, which has to make what is kept.

    With --rates such data goes through collectives on two nodes of a lab, as it is, compressed by two fixed choices and
    by auto, beside random data; "predicted" is what the planner's model says of the fixed ones.

    Examples:

        offpath bench compression --chunks 4K,56K --json compression.json

        offpath bench compression --applications --standard

        offpath bench compression --rates 100mbit,1gbit --transfers 64K,1M,4M --repeats 7

        offpath bench compression --rates 1gbit --collectives ibcast --transfers 16K,64K,256K,1M,4M
    """
    options.check_files(json_file)
    if rates:
        options.require_lab("Transfers are")
        names = options.names(collectives, compression_transfers.COLLECTIVES, "a collective of transfers")
        result = compression_transfers.measure(options.words(rates), names, parse_sizes(transfers), repeats, runs)
        return compression_transfers.BENCHMARK.deliver(result, json_file)
    sizes = parse_sizes(size)
    if len(sizes) != 1:
        raise UserError(f"'{size}' is not one size (each field has it). Write it like 8M.")
    codecs = [paths().tool("offpath-codecs"), "--bytes", sizes[0], "--repeats", repeats]
    codecs += ["--chunks", ",".join(map(str, parse_sizes(chunks)))]
    with handover.folder() as folder:
        sources = [(str(file), 8)] if file else []
        sources += compression_sources.of_applications(folder) if applications else []
        sources += compression_sources.standard(folder, sizes[0]) if standard else []
        named = ",".join(f"{name}:{width}" if width != 8 else name for name, width in sources)
        rows = programs.json_output([*codecs, *(["--file", named] if named else [])])["rows"]
        made = list(dict.fromkeys(row["field"] for row in rows))
        rows += [_baseline(field, sizes[0], field in [name for name, _ in sources]) for field in made]
    for row in rows:
        row["field"] = row["field"] if row["field"] == str(file) else Path(row["field"]).name
    for row in rows:
        row["ratio"] = round(row["bytes"] / row["coded_bytes"], 3)
        row["verified"] = row.pop("whole")
    rows.sort(key=lambda row: (row["field"], row["chunk_bytes"]))
    BENCHMARK.deliver({"meta": comparison.base_meta([]) | {"repeats": repeats}, "rows": rows}, json_file)


def _baseline(field: str, size: int, is_file: bool) -> dict:
    """What a program does that compresses by itself."""
    writes = [paths().tool("offpath-codecs"), "--write", field, "--bytes", size]
    plain = Path(field).read_bytes()[:size] if is_file else programs.output(writes)
    size = len(plain)
    start = time.perf_counter()
    coded = zlib.compress(plain)
    encoded = time.perf_counter()
    whole = zlib.decompress(coded) == plain
    decoded = time.perf_counter()
    return {
        "field": field, "method": BASELINE, "kept": False, "chunk_bytes": size, "bytes": size,
        "coded_bytes": len(coded), "encode_bytes_per_s": size / (encoded - start),
        "decode_bytes_per_s": size / (decoded - encoded), "whole": whole,
    }  # fmt: skip
