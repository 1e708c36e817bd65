# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench alltoall`: how much of a nonblocking all-to-all hides behind computation, without and with Offpath."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.base.sizes import MAX_BYTES, parse_sizes
from offpath.bench import goals, measuring
from offpath.bench.kit import Benchmark, Page, Table, options, peers
from offpath.bench.kit.peers import Chart
from offpath.bench.measuring import Conditions, Series
from offpath.places import asked, comparison
from offpath.places.comparison import DPU


def _long(rows: list[dict]) -> Iterator[dict]:
    """By peer: of both, where both are right."""
    found = peers.alike((row for row in rows if row["bytes_per_peer"] >= goals.MIN_BYTES), "bytes")
    return (by_peer for by_peer in found if len(by_peer) == 2)


def _over_host(field: str) -> Callable[[list[dict]], list[float]]:
    return lambda rows: [by_peer["offpath"][field] / by_peer["host"][field] for by_peer in _long(rows)]


def _efficiencies(rows: list[dict]) -> list[float]:
    return [row["efficiency"] for row in rows if row["mode"] == DPU and row["bytes_per_peer"] >= goals.MIN_BYTES]


BENCHMARK = Benchmark(
    [
        Chart(
            "Efficiency with {mpi:mpi}", lambda row: row["efficiency"], "{efficiency:.2f}", peers.total_gain,
            "max(t_pure, t_compute) / t_total: 1 hides all communication, 0.5 none; in brackets the gain in t_total.",
            size="{bytes_per_peer:size}", limit=1.0,
        ),
        Table("{mpi:mpi}: nonblocking all-to-all with computation, size for each peer, ms", [
            ("size", "{bytes_per_peer:size}"), ("mode", lambda row: peers.TITLES[row["peer"]]),
            ("t_pure", "{t_pure_ns:ms}"), ("t_compute", "{t_compute_ns:ms}"), ("t_total", "{t_total_ns:ms}"),
            ("min-max", "{t_total_min_ns:ms}-{t_total_max_ns:ms}"), ("efficiency", "{efficiency:.3f}"),
            ("gain", "{speedup:.2f} x"), ("host CPU", "{host_cpu_ns:ms}"), ("service CPU", "{service_cpu_ns:ms}"),
        ], keys=2, strong=lambda row: row["mode"] == DPU),
        measuring.trade_table("{bytes_per_peer:size}"),
    ],
    {
        "alltoall_gain_ratio": lambda rows: [1 / ratio for ratio in _over_host("t_total_ns")(rows)],
        "alltoall_efficiency_250mbit_ratio": _efficiencies,
        "alltoall_efficiency_1gbit_ratio": _efficiencies,
        "alltoall_t_pure_ratio": _over_host("t_pure_ns"),
    },
    subject=lambda row: row["mpi"],
    aimed_at=measuring.has_links,
    page=Page(
        "Nonblocking all-to-all behind computation",
        "The same work and the same cores without and with Offpath, launched in turns; median of all launches.",
    ),
)  # fmt: skip

app = commands.alone()


@app.command()
def alltoall_command(
    mpi: asked.Mpis = "both",
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the lab.")] = 2,
    ppn: asked.Ppn = 1,
    rate: asked.Rate = "250mbit",
    sizes: Annotated[str, typer.Option(help="Bytes per peer, like 256K,1M,4M.")] = "64K,256K,1M,4M",
    runs: asked.Runs = 3,
    repeats: asked.Repeats = 10,
    collective: Annotated[str, typer.Option(help="ialltoall or ialltoallv.")] = "ialltoall",
    policy: asked.Policy = None,
    loopback: asked.Loopback = False,
    json_file: options.JsonFile = None,
    html_file: options.HtmlFile = None,
) -> None:
    """Compare a nonblocking all-to-all without and with Offpath, on the same cores.

    The computation is a fixed amount of work, set in the first launch without Offpath to last as long as the pure
    communication, and the same for all. The service shares the ranks' cores. Efficiency is
    max(t_pure, t_compute) / t_total: 1 hides everything, 0.5 nothing.

    Examples:

        offpath bench alltoall

        offpath bench alltoall --mpi mpich --sizes 1M,4M --rate 1gbit --json result.json --html result.html
    """
    kinds = comparison.chosen_mpis(mpi)
    byte_sizes = parse_sizes(sizes)
    if collective not in ("ialltoall", "ialltoallv"):
        raise UserError(f"'{collective}' is not measured here. Give ialltoall or ialltoallv.")
    options.check_files(json_file, html_file)
    built(paths().preload_library)
    conditions = Conditions(nodes, ppn, rate, loopback, runs, repeats)
    result = measure(kinds, conditions, byte_sizes, collective, policy)
    BENCHMARK.deliver(result, json_file, html_file)


def measure(
    kinds: list[str], conditions: Conditions, sizes: tuple[int, ...], collective: str, policy: str | None
) -> dict:
    """{"meta", "rows"}; one row for each MPI, size and mode. `sizes`: bytes per peer."""
    ranks = conditions.nodes * conditions.ppn
    if max(sizes) * ranks > MAX_BYTES:
        raise UserError(f"{max(sizes)} bytes for each of {ranks} ranks are more than 1 GiB in all. Give smaller sizes.")
    totals = tuple(size * ranks for size in sizes)
    both = (measuring.ALONE, measuring.offpath_peer(policy))
    all_series = [Series(kind, collective, totals, both) for kind in kinds]
    result = measuring.compare(
        kinds, conditions, all_series, {"collective": collective} | comparison.policy_meta(policy)
    )
    for row in result["rows"]:
        row["bytes_per_peer"] = row["bytes"] // ranks
    return result
