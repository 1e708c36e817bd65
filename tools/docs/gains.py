# SPDX-License-Identifier: BSD-3-Clause
"""The tables of README: what was gained, as the span of all that was published for such a program, the worst first.

The picture above them is of the same measurements: its bars are among those of the second row.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable

from measured import load, numbers
from offpath.bench import goals
from offpath.bench.kit import peers
from reached import PICTURE, each, solver, values

UNKNOWN = "not measured"


def span(found: Iterable[float], median: bool = False) -> str:
    ordered = sorted(found)
    text = " to ".join(dict.fromkeys(f"{value:.2f}" for value in (ordered[0], ordered[-1])))
    return f"{text}, median {statistics.median(ordered):.2f}" if median else text


def of(name: str, *fields: str, **where) -> list[float]:
    return [float(value) for _, value in each(*fields, **where)(load(name)["rows"])]


def ratio(name: str, above: str, below: str, **where) -> list[float]:
    rows = [row for row in load(name)["rows"] if all(row.get(key) == wanted for key, wanted in where.items())]
    return [a / row[below] for row in rows for a in numbers(row[above])[-1:] if numbers(row.get(below))]


def picture() -> tuple[list[float], list[float]]:
    """Of Offpath over the MPI alone, and over the program with MPI_Test."""
    result = json.loads(PICTURE.read_text())
    rows = (row for row in result["rows"] if row["bytes"] >= goals.MIN_BYTES)
    times = [{peer: row["t_total_ns"] for peer, row in by_peer.items()}
             for by_peer in peers.alike(rows, "mpi", "collective", "bytes")]  # fmt: skip
    return [each["host"] / each["offpath"] for each in times], [each["tests"] / each["offpath"] for each in times]


def fabrics_over_tests() -> list[float]:
    return [1 / value for row in load("collectives-fabrics")["rows"] for value in numbers(row["tcp_over_tests"])]


def fft3d() -> list[float]:
    seconds = {(row["mpi"], row["path"]): row["application_s"] for row in load("fft3d")["rows"]}
    first = [seconds[mpi, "host"] / seconds[mpi, "Offpath"] for mpi in ("Open MPI", "MPICH")]
    return first + of("fft3d-another-day", "gain")


def latency(nodes: int) -> list[float]:
    rows = [row for row in load("krylov-latency")["rows"] if (row["nodes"], row["latency"]) == (nodes, "1 ms")]
    gains = [row["pipecg_ms"] / row[ours] for row in rows for ours in ("offpath_pipecg_ms", "preloaded_ms")]
    return gains + (of("krylov-latency-other-days", "gain") if nodes == 2 else [])


def pipecg_with_a_core() -> list[float]:
    times = {row["setting"]: row for row in load("krylov")["rows"]}
    first = times["same rank, its core alone"]["pipecg_ms"] / times["phi auto"]["offpath_pipecg_ms"]
    (other,) = (
        value for _, value in solver("pipecg", "offpath_pipecg", "same rank")(load("krylov-prediction")["rows"])
    )
    return [first, 1 / other]


def open_mpis_thread(*collectives: str) -> list[str]:
    """Over Open MPI alone, over the program with MPI_Test, over Open MPI with its own thread."""
    where = {"collective": collectives}
    found = (of("progress-threads", "gain", **where), of("progress-threads", "tests_gain", **where),
             of("progress-threads", "unchanged_gain", **where))  # fmt: skip
    return [*map(span, found[:2]), f"Open MPI: {span(found[2])}"]


def own_threads(name: str) -> list[float]:
    """Of MPICH's, where it was a peer."""
    return ratio(name, "async_ms", "offpath_ms")


def programs() -> str:
    alone, tests = picture()
    petsc_best = [1 / value for value, _, _ in values("krylov_all_cores_ratio")]
    rows = [
        ("3-D FFT, 37 to 42 % communication (`make demo`; runs of two days)", span(fft3d()), UNKNOWN, UNKNOWN, "yes"),
        ("collectives of 1 and 4 MiB beside as much computation, 250 Mbit/s, 2 nodes",
         span(alone + of("collectives-250mbit", "gain")),
         span(tests + ratio("collectives-250mbit", "tests_ms", "offpath_ms"), median=True),
         f"MPICH: {span(own_threads('collectives-250mbit'), median=True)}", "yes"),
        ("the same, 1 Gbit/s", span(of("collectives-1gbit", "gain")),
         span(fabrics_over_tests() + ratio("collectives-1gbit", "tests_ms", "offpath_ms"), median=True),
         f"MPICH: {span(own_threads('collectives-1gbit'), median=True)}", "yes"),
        ("the same, ialltoall, iallgather, ibcast", *open_mpis_thread("ialltoall", "iallgather", "ibcast"), "yes"),
        ("the same, iallreduce", *open_mpis_thread("iallreduce"), "yes"),
        ("the same, 4 nodes or 2 to 4 ranks a node, 250 Mbit/s", span(of("collectives-more-ranks", "gain")),
         span(ratio("collectives-more-ranks", "tests_ms", "offpath_ms"), median=True), UNKNOWN, "yes"),
        ("3-D Jacobi by MPI_Isend and MPI_Irecv, 41 to 43 % communication, 500 Mbit/s, 2 and 4 nodes",
         span(of("halo3d", "gain")), UNKNOWN, UNKNOWN, "yes"),
        ("`MPI_Get` of 1 MiB from a rank that computes", "waits for that rank", "-", "waits, with MPICH less", "yes"),
        ("block-sparse product with `MPI_Get`, tiles of 8 KiB to 2 MiB",
         span(of("bspmm", "gain") + of("bspmm-default", "gain")), "-", UNKNOWN, "yes"),
        ("PETSc's pipelined CG, 1 ms of latency, 2 nodes", span(latency(2)), "-", UNKNOWN, "yes"),
        ("the same, 4 nodes", span(latency(4)), "-", UNKNOWN, "yes"),
        ("the same, 4 nodes on two cores without latency", span(ratio("krylov-lab", "petsc_ms", "offpath_ms",
                                                                      solver="pipecg")), "-", UNKNOWN, "yes"),
        ("PETSc's pipelined CG on one rank, one core more for the service", span(pipecg_with_a_core()), "-", UNKNOWN,
         "**no**"),
        ("PETSc's CG on two ranks, against ours on one rank and that core", span(petsc_best), "-", "-", "yes"),
    ]  # fmt: skip
    titles = "program", "MPI alone", "with MPI_Test", "the MPI's own thread", "cores of the service charged"
    return table(titles, rows)


def other_work() -> str:
    hybrid = of("minimd", "hybrid_regions", "hybrid_tasks")
    workers = of("training-epochs", "gain", way="torch's DataLoader, one worker")
    on_cores = of("training-placements", "cores_gain", way="O-DA") + of("training-less", "gain", way="O-DA")
    batches = on_cores + of("training-epochs", "gain", way="O-DA: batches by executors")
    both = of("training-epochs", "gain", way="O-Hy: both") + of("training-less", "gain", way="O-Hy")
    both += of("training-placements", "cores_gain", way="O-Hy")
    workers += of("training-placements", "cores_gain", way="torch's DataLoader, one worker")
    short, long = of("amr", "gain")
    rows = [
        ("molecular dynamics, one rank and a core for the service, `--schedule hybrid`", "the rank alone", span(hybrid),
         f"a second rank on that core: {span(of('minimd', 'all_cores'))}"),
        ("the same on two nodes, where the service shares the rank's core", "the ranks alone",
         span(of("minimd-two-nodes", "off_path", "hybrid")), "-"),
        ("PyTorch, one core trains, another one makes the batches (12 to 14 % of an epoch)", "one core alone",
         span(batches), f"torch's own worker on that core: {span(workers)}"),
        ("the same, and that core validates, too (with one executor: the least)", "one core alone", span(both),
         "none: torch does not do it"),
        ("PyTorch, gradients between 2 nodes, 1 Gbit/s", "gloo",
         span(of("training-gradients", "gain", link="1 Gbit/s")), "gloo"),
        ("shallow water, tasks that move between nodes, long patches", "the ranks themselves", span([long]), "-"),
        ("the same, short patches", "the ranks themselves", span([short]), "-"),
    ]  # fmt: skip
    return table(("program", "compared with", "Offpath", "the strongest peer"), rows)


def table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(each_row) + " |" for each_row in (titles, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(titles), *lines[1:]])
