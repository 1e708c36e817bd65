"""`offpath bench alltoall`: how much of a nonblocking all-to-all hides behind computation, without and with Offpath."""

import json
import re
import statistics
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from offpath import comparison, console, report
from offpath.comparison import DPU, HOST, Place
from offpath.errors import UserError
from offpath.mpis import TITLES
from offpath.paths import paths

TIMES = ("t_pure", "t_compute", "t_total")
_SIZE = re.compile(r"^(\d+)([kmKM]?)(?:i?[bB])?$")
_UNITS = {"": 1, "k": 1024, "m": 1024**2}


def app_command(
    mpi: Annotated[str, typer.Option(help="openmpi, mpich or both.")] = "both",
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the lab.")] = 2,
    ppn: Annotated[int, typer.Option(min=1, help="Ranks per node.")] = 1,
    rate: Annotated[str, typer.Option(help="Rate of the lab's links, like 250mbit or 1gbit.")] = "250mbit",
    sizes: Annotated[str, typer.Option(help="Bytes per peer, like 256K,1M,4M.")] = "64K,256K,1M,4M",
    runs: Annotated[int, typer.Option(min=1, help="Launches without and with Offpath, in turns.")] = 3,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats in each launch.")] = 10,
    collective: Annotated[str, typer.Option(help="ialltoall or ialltoallv.")] = "ialltoall",
    policy: Annotated[str | None, typer.Option(help="What goes to the DPU. Default: what was measured.")] = None,
    loopback: Annotated[bool, typer.Option("--loopback", help="No lab: plain loopback.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the results there.")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", help="Write a page with charts there.")] = None,
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
    for option, file in (("--json", json_file), ("--html", html_file)):
        comparison.writable_file(file, option)
    paths().require_preload_library()
    result = measure(kinds, nodes, ppn, rate, byte_sizes, runs, repeats, collective, policy, loopback)
    _show(result)
    if json_file:
        json_file.write_text(json.dumps(result, indent=1) + "\n")
    if html_file:
        html_file.write_text(_page(result))


def parse_sizes(text: str) -> list[int]:
    """Bytes of "64K,1M,300". Raises UserError for anything else."""
    sizes = []
    for word in text.split(","):
        match = _SIZE.match(word.strip())
        size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
        if not 1 <= size <= 1 << 30:
            raise UserError(f"'{word}' is not a size. Give bytes from 1 to 1 GiB, like 65536, 256K or 4M.")
        sizes.append(size)
    return sizes


def measure(
    kinds: list[str],
    nodes: int,
    ppn: int,
    rate: str,
    sizes: list[int],
    runs: int,
    repeats: int,
    collective: str,
    policy: str | None,
    loopback: bool,
) -> dict:
    """{"meta", "rows"}; one row for each MPI, size and mode."""
    meta = comparison.base_meta(kinds)
    rows = []
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with comparison.place(nodes, ppn, rate, loopback) as where, Progress(*columns, console=console.err) as progress:
        meta |= where.meta | {"collective": collective, "runs": runs, "repeats": repeats, "policy": policy}
        task = progress.add_task("", total=len(kinds) * 2 * runs)
        for kind in kinds:
            launches = _launches(where, kind, sizes, runs, repeats, collective, policy, progress, task)
            rows += _rows(kind, launches)
        progress.update(task, description="done")
    return {"meta": meta, "rows": rows}


def _launches(
    where: Place,
    kind: str,
    sizes: list[int],
    runs: int,
    repeats: int,
    collective: str,
    policy: str | None,
    progress,
    task,
) -> dict[str, list[list[dict]]]:
    """[mode][launch][size]: the program's own rows."""
    program = str(paths().bench_program("alltoall", kind))
    argv = [
        program,
        "--sizes",
        ",".join(map(str, sizes)),
        "--repeats",
        str(repeats),
        "--collective",
        collective,
        "--verify",
    ]
    work: list[str] = []
    launches: dict[str, list[list[dict]]] = {HOST: [], DPU: []}
    for run in range(runs):
        for mode in (HOST, DPU):
            progress.update(task, description=f"{TITLES[kind]}, {_mode_title(mode)}, run {run + 1} of {runs}")
            env = {"OFFPATH_POLICY": policy} if policy and mode == DPU else {}
            output, _ = comparison.run_for_json(where, kind, [*argv, *work], mode == DPU, env)
            launches[mode].append(output["rows"])
            if not work:
                work = ["--work-iterations", ",".join(str(row["work_iterations"]) for row in output["rows"])]
            progress.advance(task)
    return launches


def _rows(kind: str, launches: dict[str, list[list[dict]]]) -> list[dict]:
    rows = []
    for index in range(len(launches[HOST][0])):
        host_total = None
        for mode in (HOST, DPU):
            row = _row(kind, mode, [launch[index] for launch in launches[mode]])
            host_total = host_total or row["t_total_ns"]
            rows.append(row | {"speedup": host_total / row["t_total_ns"]})
    return rows


def _row(kind: str, mode: str, samples: list[dict]) -> dict:
    def median(name: str) -> float:
        return statistics.median(sample[name] for sample in samples)

    row = {"mpi": kind, "mode": mode, "bytes_per_peer": samples[0]["bytes_per_peer"], "ranks": samples[0]["ranks"]}
    row |= {f"{time}_ns": round(median(f"{time}_ns")) for time in TIMES}
    row["efficiency"] = max(row["t_pure_ns"], row["t_compute_ns"]) / row["t_total_ns"]
    row |= {name: round(median(name)) for name in ("host_cpu_ns", "service_cpu_ns")}
    row["runs"] = len(samples)
    for time in TIMES:
        row[f"{time}_min_ns"] = min(sample[f"{time}_min_ns"] for sample in samples)
        row[f"{time}_max_ns"] = max(sample[f"{time}_max_ns"] for sample in samples)
    row["work_iterations"] = samples[0]["work_iterations"]
    row["verified"] = all(sample["verified"] for sample in samples)
    return row


HEADER = ("size", "mode", "t_pure", "t_compute", "t_total", "min-max", "efficiency", "gain", "host CPU",
          "service CPU")  # fmt: skip
NARROW_COLUMNS = 8  # without the processor times, which a terminal of 80 columns has no room for
WIDE = 110


def _cells(row: dict) -> list[str]:
    def ms(name: str) -> str:
        value = row[name] / 1e6
        return f"{value:.{3 if value < 1 else 2 if value < 100 else 1}f}"

    return [
        size_text(row["bytes_per_peer"]),
        _mode_title(row["mode"]),
        *(ms(f"{time}_ns") for time in TIMES),
        f"{ms('t_total_min_ns')}-{ms('t_total_max_ns')}",
        f"{row['efficiency']:.3f}",
        f"{row['speedup']:.2f} x",
        ms("host_cpu_ns"),
        ms("service_cpu_ns"),
    ]


def _show(result: dict) -> None:
    shown = len(HEADER) if console.out.width >= WIDE else NARROW_COLUMNS
    for kind in result["meta"]["mpi_versions"]:
        title = f"{TITLES[kind]}: nonblocking all-to-all with computation, ms"
        table = Table(*HEADER[:shown], title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for column in table.columns:
            column.no_wrap = True
            column.justify = "left" if column.header == "mode" else "right"
        for row in result["rows"]:
            if row["mpi"] == kind:
                own = row["mode"] == DPU
                table.add_row(*_cells(row)[:shown], style="bold" if own else "", end_section=own)
        console.out.print(table)


def _page(result: dict) -> str:
    meta, sections = result["meta"], []
    for kind in meta["mpi_versions"]:
        rows = [row for row in result["rows"] if row["mpi"] == kind]
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


def size_text(size: int) -> str:
    for unit, name in ((1024**2, "MiB"), (1024, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def _mode_title(mode: str) -> str:
    return "host" if mode == HOST else "Offpath"
