# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench pt2pt`: Offpath against the other ways to hide point-to-point messages behind computation."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_sizes, size_text
from offpath.bench import compared, measuring
from offpath.bench.kit import Benchmark, Page, options
from offpath.bench.measuring import Conditions, Program, Series
from offpath.bench.suite.collectives import LEAD, overlap_goals, overlap_tables
from offpath.places import asked, comparison

# What the program pt2pt measures, and how many messages are under way at a time.
PATTERNS = {
    "posted": 1, "posted_8": 8, "posted_any": 1, "posted_any_8": 8,
    "unexpected": 1, "unexpected_8": 8, "unexpected_any": 1, "unexpected_any_8": 8,
    "columns": 1,
}  # fmt: skip
PROGRAM = Program("pt2pt", "pattern")
# The row that ships (docs/design/0019-point-to-point.md says why), for every network and also where cores are shared.
DEFAULT_POLICY = "send:512K-inf:dpu"

BENCHMARK = Benchmark(
    overlap_tables(PROGRAM.noun),
    overlap_goals(PROGRAM.name, PROGRAM.noun),
    subject=lambda row: row["mpi"],
    aimed_at=measuring.has_links,
    page=Page("Point-to-point messages behind computation", LEAD),
)

app = commands.alone()


@app.command()
def pt2pt_command(
    mpi: asked.Mpis = "both",
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the lab.")] = 2,
    ppn: asked.Ppn = 1,
    rate: asked.Rate = "1gbit",
    sizes: Annotated[str, typer.Option(help="Bytes of a message.")] = "8,1K,64K,256K,512K,1M,4M,16M",
    patterns: Annotated[str, typer.Option(help="Which, separated by commas.")] = ",".join(PATTERNS),
    most: Annotated[str, typer.Option(help="All that a rank may have under way; longer cases are left out.")] = "16M",
    peers: Annotated[Optional[str], typer.Option(help=compared.HELP, show_default=compared.USUAL)] = None,
    tests: Annotated[int, typer.Option(min=1, help="Calls of MPI_Testall within the work, for the peer tests.")] = 64,
    runs: asked.Runs = 3,
    repeats: asked.Repeats = 10,
    policy: Annotated[str, typer.Option(help="What goes to the DPU.")] = DEFAULT_POLICY,
    loopback: asked.Loopback = False,
    json_file: options.JsonFile = None,
    html_file: options.HtmlFile = None,
) -> None:
    """Compare MPI_Isend and MPI_Irecv without and with Offpath, on the same cores, with what else hides communication.

    Each rank sends to a partner in the other half of the ranks, and receives as much. The patterns: *posted*, receives
    are posted before the messages are sent; *unexpected*, the messages have arrived before, and receives are posted
    when half of the work is done; *any*, receives with MPI_ANY_SOURCE and MPI_ANY_TAG; *8*, eight messages at a time;
    *columns*, posted ones in pieces of 64 bytes, as many apart, on both sides.
    Peers, work, times, efficiency and gain are those of `offpath bench collectives`; a size is that of one message.
    Shorter messages than --policy names are the MPI's own, with Offpath loaded.

    Examples:

        offpath bench pt2pt

        offpath bench pt2pt --mpi mpich --patterns posted,unexpected_any_8 --sizes 256K,1M --html result.html

        offpath bench pt2pt --peers host --policy "send:64K-inf:dpu" --rate 250mbit --json result.json
    """
    kinds = comparison.chosen_mpis(mpi)
    byte_sizes = parse_sizes(sizes)
    (most_bytes,) = parse_sizes(most)
    names = options.names(patterns, PATTERNS, "a pattern")
    chosen = compared.chosen(peers, kinds, tests, policy)
    options.check_files(json_file, html_file)
    if nodes * ppn % 2:
        raise UserError(f"{nodes * ppn} ranks are not usable (each needs a partner). Change --nodes or --ppn.")
    all_series = chosen_series(kinds, names, byte_sizes, most_bytes, chosen)
    if not all_series:
        raise UserError(f"No case has {size_text(most_bytes)} under way or less. Give shorter --sizes, or more --most.")
    built(paths().preload_library)
    about = {
        "patterns": names, "sizes_bytes": list(byte_sizes), "most_bytes": most_bytes,
        "peers": [peer.name for peer in chosen], "tests": tests,
    } | comparison.policy_meta(policy)  # fmt: skip
    result = measuring.compare(kinds, Conditions(nodes, ppn, rate, loopback, runs, repeats), all_series, about)
    BENCHMARK.deliver(result, json_file, html_file)


def chosen_series(
    kinds: list[str], names: list[str], sizes: tuple[int, ...], most_bytes: int, peers: tuple[measuring.Peer, ...]
) -> list[Series]:
    found = []
    for kind in kinds:
        for name in names:
            fitting = tuple(size for size in sizes if size * PATTERNS[name] <= most_bytes)
            if fitting:
                found.append(Series(kind, name, fitting, peers, PROGRAM, messages=PATTERNS[name]))
    return found
