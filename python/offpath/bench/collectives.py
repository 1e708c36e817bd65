# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench collectives`: Offpath against the other ways to hide a collective behind computation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.paths import paths
from offpath.base.sizes import parse_sizes
from offpath.bench import goals, measuring, overlap_report, placements, results
from offpath.bench.measuring import COLLECTIVES, Conditions, Peer, Series
from offpath.bench.placements import CORES, DPU, PLACEMENTS, Link
from offpath.launch.mpis import MPICH
from offpath.places import asked, comparison

DEFAULT_COLLECTIVES = "ialltoall,ialltoallv,iallgather,iallgatherv,ibcast,iallreduce,ireduce_scatter_block"
PEERS = ("host", "tests", "async", "offpath")
# Its progress thread has no core of its own: it must not spin on the rank's.
ASYNC_ENV = {"MPIR_CVAR_ASYNC_PROGRESS": "1", "OFFPATH_LAB_YIELD": "1"}

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
    peers: Annotated[
        str, typer.Option(help="What to compare with: host, tests, async. Offpath is always measured.")
    ] = "host,tests,async",
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
    json_file: results.JsonFile = None,
    html_file: results.HtmlFile = None,
) -> None:
    """Compare nonblocking collectives without and with Offpath, on the same cores, with what else hides communication.

    The peers: *host*, the same MPI alone; *tests*, the same with MPI_Test called all through the computation; *async*,
    MPICH with its progress thread. The computation is a fixed amount of work, set in the first launch of the MPI alone
    to last as long as the pure communication, and the same for all. Offpath's service and the progress thread share
    the ranks' cores. Efficiency is max(t_pure, t_compute) / t_total: 1 hides everything, 0.5 nothing. Gain is t_total
    of the best peer / t_total of Offpath.

    With --placement dpu the service runs on a DPU of each host that is a machine of its own, with node on one spare
    node for all hosts, each in a lab beside the others. What their agents take on the hosts is charged to the hosts.

    Examples:

        offpath bench collectives

        offpath bench collectives --mpi mpich --collectives ibcast,iallreduce --sizes 256K,4M --html result.html

        offpath bench collectives --peers host,tests --policy "*:dpu" --rate 1gbit --json result.json

        offpath bench collectives --placement cores,dpu --rate 1gbit --link-rate 2gbit --link-latency 5us
    """
    kinds = comparison.chosen_mpis(mpi)
    byte_sizes = parse_sizes(sizes)
    names = measuring.parse_names(collectives, COLLECTIVES, "a collective")
    places = measuring.parse_names(placement, PLACEMENTS, "a placement")
    link = Link(link_rate, link_latency)
    placements.check(places, loopback, link)
    chosen = chosen_peers(peers, tests, policy, places)
    results.check_files(json_file, html_file)
    paths().require_preload_library()
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
    result["checks"] = checks(result) + dpu_checks(result)
    results.deliver(result, overlap_report.show, json_file, overlap_report.page, html_file)


def checks(result: dict, bench: str = "collectives", noun: str = overlap_report.COLLECTIVE) -> list[dict]:
    """Without a link there is no time to hide, and nothing is aimed at."""
    rate, found = result["meta"]["rate"], []
    for kind in result["meta"]["mpi_versions"] if rate else ():
        right = {"rows": [row for row in result["rows"] if row["verified"] and row["bytes"] >= goals.MIN_BYTES]}
        rows = [by_peer for _, _, by_peer in overlap_report.groups(right, kind, noun)]
        efficiencies = (by_peer["offpath"]["efficiency"] for by_peer in rows if "offpath" in by_peer)
        found += goals.check_at_rate(bench, rate, efficiencies, kind)
        gains = map(overlap_report.gain, rows)
        found += goals.check(f"{bench}_gain_ratio", (gain for gain in gains if gain is not None), kind)
    return found


def dpu_checks(result: dict) -> list[dict]:
    found = []
    for kind in result["meta"]["mpi_versions"]:
        right = {"rows": [row for row in result["rows"] if row["verified"] and row["bytes"] >= goals.MIN_BYTES]}
        placed = [
            {row["placement"]: row for row in by_peer.values()} for _, _, by_peer in overlap_report.groups(right, kind)
        ]
        ratios = [
            by_placement[DPU]["t_pure_ns"] / by_placement[CORES]["t_pure_ns"]
            for by_placement in placed
            if {DPU, CORES} <= by_placement.keys()
        ]
        efficiencies = [by_placement[DPU]["efficiency"] for by_placement in placed if DPU in by_placement]
        found += goals.check("collectives_dpu_t_pure_ratio", ratios, kind)
        found += goals.check("collectives_dpu_efficiency_ratio", efficiencies, kind)
    return found


def chosen_peers(text: str, tests: int, policy: str | None, places: Sequence[str] = (CORES,)) -> tuple[Peer, ...]:
    """The MPI alone, which sets the work, then those in "tests,async", then Offpath at each of the places."""
    names = measuring.parse_names(text, PEERS, "a peer")
    known = (
        Peer("tests", "MPI_Test", arguments=("--tests", str(tests))),
        Peer("async", "async", env=ASYNC_ENV, only_mpi=MPICH),
    )
    offpath = placements.peers(places, measuring.offpath_peer(policy))
    return (measuring.ALONE, *(peer for peer in known if peer.name in names), *offpath)
