# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench collectives`: Offpath against the other ways to hide a collective behind computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Optional

import typer

from offpath.base import commands
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_sizes
from offpath.bench import compared, goals, measuring, placements
from offpath.bench.kit import Benchmark, Page, Table, options, peers
from offpath.bench.kit.peers import Beside, ByPeer, Chart
from offpath.bench.measuring import COLLECTIVES, Conditions, Series
from offpath.bench.placements import CORES, DPU, PLACEMENTS, Link
from offpath.places import asked, comparison

DEFAULT_COLLECTIVES = "ialltoall,ialltoallv,iallgather,iallgatherv,ibcast,iallreduce,ireduce_scatter_block"


def _long(rows: Sequence[dict], noun: str) -> list[ByPeer]:
    return peers.alike((row for row in rows if row["bytes"] >= goals.MIN_BYTES), noun, "bytes")


def overlap_goals(bench: str, noun: str) -> dict[str, Callable[[list[dict]], list[float]]]:
    def efficiencies(rows: list[dict]) -> list[float]:
        return [by_peer["offpath"]["efficiency"] for by_peer in _long(rows, noun) if "offpath" in by_peer]

    def gains(of: peers.Gain) -> Callable[[list[dict]], list[float]]:
        return lambda rows: [gain for gain in map(of, _long(rows, noun)) if gain is not None]

    return {
        f"{bench}_efficiency_250mbit_ratio": efficiencies, f"{bench}_efficiency_1gbit_ratio": efficiencies,
        f"{bench}_gain_ratio": gains(peers.total_gain), f"{bench}_unchanged_gain_ratio": gains(peers.unchanged_gain),
    }  # fmt: skip


def overlap_tables(noun: str) -> list:
    """What is shown of rows of peers that hide communication behind computation."""
    return [
        Beside("{mpi:mpi}: t_total in ms and efficiency", f"{{{noun}}}",
               [("", "{t_total_ns:ms}"), ("eff.", "{efficiency:.2f}")],
               {"gain": peers.total_gain, "as is": peers.unchanged_gain}),
        Chart(
            f"Efficiency of {{{noun}}} with {{mpi:mpi}}", lambda row: row["efficiency"], "{efficiency:.2f}",
            peers.total_gain, limit=1.0, note=
            "Efficiency: max(t_pure, t_compute) / t_total; in brackets t_total of the best peer / of Offpath.",
        ),
        Table("All numbers with {mpi:mpi}: median times in ms", [
            (noun, f"{{{noun}}}"), ("size", "{bytes:size}"), ("peer", lambda row: peers.title(row["peer"])),
            ("t_pure", "{t_pure_ns:ms}"), ("t_compute", "{t_compute_ns:ms}"), ("t_total", "{t_total_ns:ms}"),
            ("min-max", "{t_total_min_ns:ms}-{t_total_max_ns:ms}"), ("efficiency", "{efficiency:.3f}"),
            ("gain over host", "{speedup:.2f} x"), ("host CPU", "{host_cpu_ns:ms}"),
            ("service CPU", "{service_cpu_ns:ms}"),
        ], on_page_only=True),
    ]  # fmt: skip


def _t_pure_on_dpus(rows: list[dict]) -> list[float]:
    """Over that of the cores."""
    both = [by_peer for by_peer in _long(rows, "collective") if {"offpath", f"offpath-{DPU}"} <= by_peer.keys()]
    return [by_peer[f"offpath-{DPU}"]["t_pure_ns"] / by_peer["offpath"]["t_pure_ns"] for by_peer in both]


LEAD = (
    "The same work and the same cores for all, launched in turns; median of all launches. host: the MPI alone; "
    "MPI_Test: the same, tested all through the computation; async: MPICH with its progress thread; thread: Open MPI "
    "with that of its TCP transport."
)
BENCHMARK = Benchmark(
    [
        *overlap_tables("collective"),
        Table("{mpi:mpi}: ms, and ns of processor time per byte", [
            ("", "{collective} {bytes:size}"), ("placement", "{placement}"), ("t_pure", "{t_pure_ns:ms}"),
            ("t_total", "{t_total_ns:ms}"), ("eff.", "{efficiency:.2f}"), ("host", "{host_cpu_ns_per_byte:.2f}"),
            ("service", "{service_cpu_ns_per_byte:.2f}"),
        ], keys=2, where=lambda row: row["placement"] is not None,
            when=lambda result: any(row["peer"] in peers.FAR_TITLES for row in result["rows"])),
        measuring.trade_table("{collective} {bytes:size}"),
    ],
    overlap_goals("collectives", "collective") | {
        "collectives_dpu_t_pure_ratio": _t_pure_on_dpus,
        "collectives_dpu_efficiency_ratio": lambda rows: [
            row["efficiency"] for row in rows if row.get("placement") == DPU and row["bytes"] >= goals.MIN_BYTES
        ],
    },
    subject=lambda row: row["mpi"],
    aimed_at=measuring.has_links,
    page=Page("Nonblocking collectives behind computation", LEAD),
)  # fmt: skip

app = commands.alone()


@app.command()
def collectives_command(
    mpi: asked.Mpis = "both",
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the lab.")] = 2,
    ppn: asked.Ppn = 1,
    rate: asked.Rate = "250mbit",
    sizes: Annotated[
        str, typer.Option(help="All bytes that a rank sends or receives, whichever is more.")
    ] = "8,1K,64K,256K,1M,4M",
    collectives: Annotated[str, typer.Option(help="Which, separated by commas.")] = DEFAULT_COLLECTIVES,
    peers_asked: Annotated[
        Optional[str], typer.Option("--peers", help=compared.HELP, show_default=compared.USUAL)
    ] = None,
    tests: Annotated[int, typer.Option(min=1, help="Calls of MPI_Test within the work, for the peer tests.")] = 64,
    runs: asked.Runs = 3,
    repeats: asked.Repeats = 10,
    policy: asked.Policy = None,
    placement: Annotated[
        str, typer.Option(help="Where the service runs: cores (of the hosts), dpu (of each host), node (a spare one).")
    ] = CORES,
    link_rate: placements.LinkRate = None,
    link_latency: placements.LinkLatency = "0",
    loopback: asked.Loopback = False,
    json_file: options.JsonFile = None,
    html_file: options.HtmlFile = None,
) -> None:
    """Compare nonblocking collectives without and with Offpath, on the same cores, with what else hides communication.

    The peers: *host*, the same MPI alone; *tests*, the same with MPI_Test called all through the computation; *async*,
    MPICH with its progress thread; *thread*, Open MPI with that of its TCP transport; *thread-yield*, the same, and
    ranks that wait yield. The computation is a fixed amount of work, set in the first launch of the MPI alone to last
    as long as the pure communication, and the same for all. Offpath's service and the progress threads share the
    ranks' cores; *encrypt* and *unprotected* are Offpath with another OFFPATH_FABRIC_SECURITY. Efficiency is
    max(t_pure, t_compute) / t_total: 1 hides everything, 0.5 nothing. *gain* is t_total of the best MPI / t_total of
    Offpath; *as is* the same of the best that leaves the program as it is, all but tests.

    With --placement dpu the service runs on a DPU of each host that is a machine of its own, with node on one spare
    node for all hosts, each in a lab beside the others. What their agents take on the hosts is charged to the hosts.

    Examples:

        offpath bench collectives

        offpath bench collectives --mpi mpich --collectives ibcast,iallreduce --sizes 256K,4M --html result.html

        offpath bench collectives --peers host,tests --policy "*:dpu" --rate 1gbit --json result.json

        offpath bench collectives --placement cores,dpu --rate 1gbit --link-rate 2gbit --link-latency 5us

        offpath bench collectives --peers host,encrypt,unprotected --rate 10gbit

        offpath bench collectives --mpi openmpi --peers host,tests,thread,thread-yield --rate 1gbit
    """
    kinds = comparison.chosen_mpis(mpi)
    byte_sizes = parse_sizes(sizes)
    names = options.names(collectives, COLLECTIVES, "a collective")
    places = options.names(placement, PLACEMENTS, "a placement")
    link = Link(link_rate, link_latency)
    placements.check(places, loopback, link)
    chosen = compared.chosen(peers_asked, kinds, tests, policy, places)
    options.check_files(json_file, html_file)
    built(paths().preload_library)
    all_series = [Series(kind, name, byte_sizes, chosen) for kind in kinds for name in names]
    about = {
        "collectives": names, "sizes_bytes": list(byte_sizes), "peers": [peer.name for peer in chosen], "tests": tests,
        "placements": places, "link_rate": link_rate, "link_latency": link_latency,
    } | comparison.policy_meta(policy)  # fmt: skip
    conditions = Conditions(nodes, ppn, rate, loopback, runs, repeats)
    with placements.labs(places, conditions, link) as elsewhere:
        result = measuring.compare(kinds, conditions, all_series, about, elsewhere)
    for row in result["rows"]:
        row |= placements.costs(row)
    BENCHMARK.deliver(result, json_file, html_file)
