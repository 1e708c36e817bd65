# SPDX-License-Identifier: BSD-3-Clause
"""The table of docs/when-not.md: where something else is as fast or faster, what it is, and the figures that say so."""

from __future__ import annotations

from gains import fabrics_over_tests, of, ratio, span, table
from measured import load
from reached import values

ALONE = "the MPI alone"


def async_progress() -> list[float]:
    return [value for name in ("collectives-250mbit", "collectives-1gbit") for value in ratio(
        name, "async_ms", "offpath_ms")]  # fmt: skip


def few_bytes() -> tuple[str, str]:
    rows = [row for row in load("onesided")["rows"] if row["operation"].endswith(" 8 B")]
    ours, theirs = ([row[name] for row in rows] for name in ("idle_us", "host_idle_us"))
    return tuple(f"{min(times):.0f} to {max(times):.0f} us" for times in (ours, theirs))


def reasons() -> str:
    one_node = of("one-node", "gain_64k", "gain_1m", "gain_4m")
    ours, theirs = few_bytes()
    pieces_short = of("amr", "gain")[0]
    messages = of("pt2pt", "best_peer_gain", pattern="posted") + of("pt2pt", "best_peer_gain", pattern="posted_8")
    rows = [
        ("calls `MPI_Test` often, at the right places", "1 Gbit/s", "any", "leave it so",
         span(fabrics_over_tests() + ratio("collectives-1gbit", "tests_ms", "offpath_ms"))),
        ("the same, messages whose receives are posted early", "1 Gbit/s", "any", "leave it so", span(messages)),
        ("may not be changed: ialltoall, iallgather, ibcast", "1 Gbit/s", "Open MPI over TCP",
         "`OMPI_MCA_btl_tcp_progress_thread=1` hides them as well; here its thread was on the rank's core",
         span(of("progress-threads", "unchanged_gain", collective=("ialltoall", "iallgather", "ibcast")))),
        ("the same, iallreduce", "1 Gbit/s", "Open MPI over TCP", "the same variable hides a part of it",
         span(of("progress-threads", "unchanged_gain", collective="iallreduce"))),
        ("may not be changed", "250 Mbit/s, 1 Gbit/s", "MPICH",
         "try `MPIR_CVAR_ASYNC_PROGRESS=1`; here its thread was on the rank's core", span(async_progress())),
        ("gains by one more rank: PETSc's CG", "none", "any", "give the service's core to a rank",
         span([1 / value for value, _, _ in values("krylov_all_cores_ratio")])),
        ("the same: molecular dynamics", "none", "any", "the same",
         f"{span(of('minimd', 'hybrid_regions', 'hybrid_tasks'))}; a rank brings {span(of('minimd', 'all_cores'))}"),
        ("sums again and again (PETSc's pipelined CG)", "without latency, 4 nodes on two cores", "any", ALONE,
         span(ratio("krylov-lab", "petsc_ms", "offpath_ms", solver="pipecg"))),
        ("runs on one node", "none", "any", f"{ALONE}: the default there", span(one_node)),
        ("puts and gets a few bytes from targets that wait", "250 Mbit/s", "any", ALONE,
         f"{ours} instead of {theirs}"),
        ("trains with PyTorch, gradients", "1 Gbit/s", "-", "gloo",
         span(of("training-gradients", "gain", link="1 Gbit/s"))),
        ("moves its work in short pieces (shallow water)", "1 Gbit/s", "any", "keep the work where it is",
         span([pieces_short])),
    ]  # fmt: skip
    titles = ("program", "network", "MPI", "instead", "Offpath against that, times faster (below 1: slower)")
    return table(titles, rows)
