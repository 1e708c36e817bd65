# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench onesided`: Offpath against the MPI or OpenSHMEM, with targets that wait and that compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Optional

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_sizes
from offpath.bench import compared, measuring
from offpath.bench.kit import Benchmark, Page, Table, options, peers
from offpath.bench.kit.peers import Beside, Chart
from offpath.bench.kit.tables import Cell, cell
from offpath.bench.measuring import Conditions, Peer, Program, Series
from offpath.launch import mpis
from offpath.launch.mpis import TITLES
from offpath.places import asked, comparison

# What the program onesided measures; those of one word have a size of their own.
OPERATIONS = ("put", "get", "fetch_and_op", "put_rate")
OF_A_WORD = ("fetch_and_op", "put_rate")
WORD_BYTES = 8
TARGETS = ("idle", "computing")
PROGRAM = Program(
    "onesided",
    "operation",
    labels=("bytes", "messages", "target", "interface", "ranks"),
    medians=("target_piece_ns", "host_cpu_ns", "service_cpu_ns"),
    carried=("piece_iterations",),
    rows_per_size=len(TARGETS),
)
# Its launcher matters: a lab keeps OpenSHMEM out of the memory that its emulated nodes share.
SHMEM_PROGRAM = replace(PROGRAM, name="onesided_shmem", launcher=mpis.OPENSHMEM)
# On both sides: without RDMA, Open MPI 4.1's other component aborts and gives wrong results; and its OpenSHMEM dies in
# shmem_finalize where it has patched the program's memory functions.
COMPONENTS = {"OMPI_MCA_osc": "sm,pt2pt"}
NATIVE = COMPONENTS | {"OMPI_MCA_memory": "^patcher"}

PEERS = (measuring.ALONE.name, *(peer.name for peer in compared.THREADS), "offpath")
USUAL = "host,async,thread"
INTERFACES = {"mpi": "MPI RMA", "shmem": "OpenSHMEM"}


gain = peers.gain_in("t_pure_ns")


def _of_library(text: str) -> Cell:
    return lambda row: cell(text, row | {"library": f"{TITLES[row['mpi']]}, {INTERFACES[row['interface']]}"})


def _computing(rows: Sequence[dict]) -> list[float]:
    """Whether Offpath's operations wait for a target that computes."""
    t_pure: dict[tuple, dict[str, int]] = {}
    for row in rows:
        if row["peer"] == "offpath":
            t_pure.setdefault((row["operation"], row["bytes"]), {})[row["target"]] = row["t_pure_ns"]
    return [by["computing"] / by["idle"] for by in t_pure.values() if len(by) == len(TARGETS)]


BENCHMARK = Benchmark(
    [
        Beside(_of_library("{library}: t_pure and t_total in us, efficiency, gain in t_pure"), "{operation}, {target}",
               [("", "{t_pure_ns:us}"), ("total", "{t_total_ns:us}"), ("eff.", "{efficiency:.2f}")], {"gain": gain}),
        Chart(
            _of_library("t_pure of {operation}, {target} target, with {library}"), lambda row: row["t_pure_ns"] / 1e3,
            "{t_pure_ns:us}", gain, spread=lambda row: (row["t_pure_min_ns"] / 1e3, row["t_pure_max_ns"] / 1e3), note=
            "Bars: t_pure in us with its range; in brackets t_pure of the best of the others / of Offpath.",
        ),
        Table(_of_library("All numbers with {library}: median times in us"), [
            ("operation", "{operation}"), ("size", "{bytes:size}"), ("target", "{target}"),
            ("peer", lambda row: peers.TITLES[row["peer"]]), ("t_pure", "{t_pure_ns:us}"),
            ("t_compute", "{t_compute_ns:us}"), ("t_total", "{t_total_ns:us}"),
            ("t_pure min-max", "{t_pure_min_ns:us}-{t_pure_max_ns:us}"), ("efficiency", "{efficiency:.3f}"),
            ("messages/s", lambda row: f"{row['messages'] / row['t_pure_ns'] * 1e9:.0f}"),
            ("piece", "{target_piece_ns:us}"), ("host CPU", "{host_cpu_ns:us}"),
            ("service CPU", "{service_cpu_ns:us}"),
        ], on_page_only=True),
    ],
    {"onesided_computing_ratio": _computing},
    subject=lambda row: f"{row['mpi']}/{row['interface']}",
    page=Page(
        "One-sided operations",
        "The same work and the same cores for all, launched in turns; median of all launches. host: the library alone; "
        "async, thread: the MPI with its progress thread. An idle target waits in a barrier, a computing one calls its "
        "library between pieces of 10 ms only. piece: how long such a piece took.",
    ),
)  # fmt: skip

app = commands.alone()


@app.command()
def onesided_command(
    mpi: asked.Mpis = "both",
    shmem: Annotated[bool, typer.Option("--shmem", help="Measure OpenSHMEM (of Open MPI) too.")] = False,
    nodes: Annotated[int, typer.Option(min=2, help="Nodes of the lab.")] = 2,
    ppn: asked.Ppn = 1,
    rate: asked.Rate = "250mbit",
    sizes: Annotated[str, typer.Option(help="Bytes of a put or get.")] = "8,1K,64K,256K,1M,4M",
    operations: Annotated[str, typer.Option(help="Which, separated by commas.")] = ",".join(OPERATIONS),
    peers_asked: Annotated[
        Optional[str],
        typer.Option(
            "--peers", help=f"What to compare with: host; {compared.THREADS_HELP}. Offpath is always measured.",
            show_default=USUAL,
        ),
    ] = None,  # fmt: skip
    runs: asked.Runs = 3,
    repeats: asked.Repeats = 10,
    policy: asked.Policy = None,
    loopback: asked.Loopback = False,
    json_file: options.JsonFile = None,
    html_file: options.HtmlFile = None,
) -> None:
    """Compare one-sided operations without and with Offpath, on the same cores.

    The lower half of the ranks are origins, each with a target in the upper half. An *idle* target waits in a barrier,
    a *computing* one computes for 10 ms at a time and calls its library only in between. t_pure is the operation and
    its flush, t_total the operation, a fixed amount of work, and the flush; the work is set in the first launch of the
    library alone to last as long as t_pure there, and the same for all. put_rate is 64 puts before a flush. Offpath's
    services and the progress threads of the MPIs (*async*, *thread*, *thread-yield*) share the ranks' cores; OpenSHMEM
    has none. Efficiency is max(t_pure, t_compute) / t_total: 1 hides everything. *gain* is t_pure of the best of the
    others / of Offpath.

    Examples:

        offpath bench onesided

        offpath bench onesided --mpi mpich --operations get --sizes 64K,4M --rate 1gbit --html result.html

        offpath bench onesided --mpi openmpi --peers host,thread,thread-yield --sizes 8,1M
    """
    kinds = comparison.chosen_mpis(mpi)
    byte_sizes = parse_sizes(sizes)
    names = options.names(operations, OPERATIONS, "an operation")
    chosen = compared.names(peers_asked, kinds, PEERS, USUAL)
    options.check_files(json_file, html_file)
    if nodes * ppn % 2:
        raise UserError(f"{nodes * ppn} ranks are not usable (every origin needs a target). Change --nodes or --ppn.")
    built(paths().preload_library)
    all_series = chosen_series(kinds, shmem, names, byte_sizes, policy, chosen)
    about = {
        "operations": names, "sizes_bytes": list(byte_sizes), "shmem": shmem,
        "peers": [peer.name for peer in chosen_peers(policy, chosen)],
    } | comparison.policy_meta(policy)  # fmt: skip
    result = measuring.compare(kinds, Conditions(nodes, ppn, rate, loopback, runs, repeats), all_series, about)
    BENCHMARK.deliver(result, json_file, html_file)


def chosen_peers(policy: str | None, threads: Sequence[str] = ()) -> tuple[Peer, ...]:
    """The library alone, with these threads, and Offpath: of a launch in which it did nothing there is nothing to
    compare."""
    offloaded = replace(measuring.offpath_peer(policy), must_offload=True)
    found = (measuring.ALONE, *compared.threads(threads), offloaded)
    return tuple(replace(peer, env=NATIVE | dict(peer.env)) for peer in found)


def chosen_series(
    kinds: list[str], shmem: bool, names: list[str], sizes: tuple[int, ...], policy: str | None,
    threads: Sequence[str] = (),
) -> list[Series]:  # fmt: skip
    """Open MPI's thread moves nothing of its OpenSHMEM, which has a transport of its own."""
    programs = [(kind, PROGRAM, chosen_peers(policy, threads)) for kind in kinds]
    programs += [(mpis.OPENMPI, SHMEM_PROGRAM, chosen_peers(policy))] if shmem else []
    return [
        Series(kind, name, (WORD_BYTES,) if name in OF_A_WORD else sizes, peers, program)
        for kind, program, peers in programs
        for name in names
    ]
