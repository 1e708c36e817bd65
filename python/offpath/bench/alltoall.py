# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench alltoall`: how much of a nonblocking all-to-all hides behind computation, without and with Offpath."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box

from offpath.base import commands, console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.sizes import MAX_BYTES, ms_text, parse_sizes, size_text
from offpath.base.tables import Table
from offpath.bench import goals, measuring, results
from offpath.bench.measuring import TIMES, Conditions, Series
from offpath.launch.mpis import TITLES
from offpath.pages import report
from offpath.places import asked, comparison
from offpath.places.comparison import DPU, HOST

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
    json_file: results.JsonFile = None,
    html_file: results.HtmlFile = None,
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
    results.check_files(json_file, html_file)
    paths().require_preload_library()
    conditions = Conditions(nodes, ppn, rate, loopback, runs, repeats)
    result = measure(kinds, conditions, byte_sizes, collective, policy)
    result["checks"] = checks(result)
    results.deliver(result, _show, json_file, _page, html_file)


def measure(
    kinds: list[str], conditions: Conditions, sizes: tuple[int, ...], collective: str, policy: str | None
) -> dict:
    """{"meta", "rows"}; one row for each MPI, size and mode. `sizes`: bytes per peer."""
    ranks = conditions.nodes * conditions.ppn
    if max(sizes) * ranks > MAX_BYTES:
        raise UserError(f"{max(sizes)} bytes for each of {ranks} ranks are more than 1 GiB in all. Give smaller sizes.")
    totals = tuple(size * ranks for size in sizes)
    peers = (measuring.ALONE, measuring.offpath_peer(policy))
    all_series = [Series(kind, collective, totals, peers) for kind in kinds]
    result = measuring.compare(
        kinds, conditions, all_series, {"collective": collective} | comparison.policy_meta(policy)
    )
    for row in result["rows"]:
        row["bytes_per_peer"] = row["bytes"] // ranks
    return result


def checks(result: dict) -> list[dict]:
    """Without a link there is no time to hide, and nothing is aimed at."""
    rate, found = result["meta"]["rate"], []
    for kind in result["meta"]["mpi_versions"] if rate else ():
        rows = [row for row in result["rows"] if row["mpi"] == kind and row["bytes_per_peer"] >= goals.MIN_BYTES]
        alone = {row["bytes"]: row for row in rows if row["mode"] == HOST and row["verified"]}
        ours = [row for row in rows if row["mode"] == DPU and row["verified"]]
        pairs = [(alone[row["bytes"]], row) for row in ours if row["bytes"] in alone]
        gains = (host["t_total_ns"] / row["t_total_ns"] for host, row in pairs)
        found += goals.check("alltoall_gain_ratio", gains, kind)
        found += goals.check_at_rate("alltoall", rate, (row["efficiency"] for row in ours), kind)
        t_pure = (row["t_pure_ns"] / host["t_pure_ns"] for host, row in pairs)
        found += goals.check("alltoall_t_pure_ratio", t_pure, kind)
    return found


HEADER = ("size", "mode", "t_pure", "t_compute", "t_total", "min-max", "efficiency", "gain", "host CPU",
          "service CPU")  # fmt: skip


def _cells(row: dict) -> list[str]:
    return [
        size_text(row["bytes_per_peer"]),
        _mode_title(row["mode"]),
        *(ms_text(row[f"{time}_ns"]) for time in TIMES),
        f"{ms_text(row['t_total_min_ns'])}-{ms_text(row['t_total_max_ns'])}",
        f"{row['efficiency']:.3f}",
        f"{row['speedup']:.2f} x",
        ms_text(row["host_cpu_ns"]),
        ms_text(row["service_cpu_ns"]),
    ]


def _show(result: dict) -> None:
    for kind in result["meta"]["mpi_versions"]:
        title = f"{TITLES[kind]}: nonblocking all-to-all with computation, ms"
        table = Table(*HEADER, keys=2, title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for column in table.columns:
            column.no_wrap = True
            column.justify = "left" if column.header == "mode" else "right"
        for row in result["rows"]:
            if row["mpi"] == kind:
                own = row["mode"] == DPU
                table.add_row(*_cells(row), style="bold" if own else "", end_section=own)
        console.out.print(table)


def _page(result: dict) -> str:
    meta, sections = result["meta"], []
    for kind in meta["mpi_versions"]:
        rows = [row for row in result["rows"] if row["mpi"] == kind]
        if not rows:
            continue
        chart = [
            report.Bar(
                f"{size_text(row['bytes_per_peer'])} {_mode_title(row['mode'])}",
                [(0 if row["mode"] == HOST else 1, row["efficiency"])],
                f"{row['efficiency']:.2f}" + (f"  ({row['speedup']:.2f} x)" if row["mode"] == DPU else ""),
                starts_group=row["mode"] == HOST,
            )
            for row in rows
        ]
        drawing = report.bars(f"Efficiency with {TITLES[kind]}", ["without Offpath", "with Offpath"], chart, limit=1.0)
        note = "max(t_pure, t_compute) / t_total: 1 hides all communication, 0.5 none; in brackets the gain in t_total."
        sections.append(report.card(f"{TITLES[kind]} {meta['mpi_versions'][kind]}", drawing, note=note))
        sections.append(
            report.card(
                "All numbers: size for each peer, median times in ms, gain in t_total",
                report.table(HEADER, [_cells(row) for row in rows]),
            )
        )
    sections.append(report.card("How this was measured", report.facts(meta)))
    lead = "The same work and the same cores without and with Offpath, launched in turns; median of all launches."
    return report.page("Nonblocking all-to-all behind computation", lead, sections)


def _mode_title(mode: str) -> str:
    return "host" if mode == HOST else "Offpath"
