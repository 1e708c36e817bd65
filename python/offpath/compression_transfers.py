# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench compression --rates`: collectives on the links of a lab, their data as it is and compressed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table

from offpath import comparison, console, mpis
from offpath.comparison import LabPlace
from offpath.errors import UserError
from offpath.lab import Lab
from offpath.lab.plan import BURST_BYTES
from offpath.measuring import ms_text
from offpath.paths import paths
from offpath.plan import compressing, model
from offpath.plan import machine as machines
from offpath.sizes import size_text

COLLECTIVES = ("ialltoall", "iallgather", "ibcast")
FIELDS = ("tiles", "halo", "random")
RAW, AUTO = "off", "auto"
WISHES = (RAW, AUTO, "lz4", "zstd:shuffle=8")
MPI = mpis.MPICH
WARMUP = 4  # auto has to find out first


def known(text: str) -> list[str]:
    """Names of collectives, separated by commas."""
    names = text.split(",")
    for name in names:
        if name not in COLLECTIVES:
            raise UserError(f"'{name}' is no collective of this benchmark. Use {', '.join(COLLECTIVES)}.")
    return names


def measure(rates: Sequence[str], collectives: Sequence[str], sizes: Sequence[int], repeats: int) -> dict:
    """{"meta", "rows"}: one row for each rate, collective, field, size and wish."""
    program = paths().bench_program("collectives", MPI)
    rows = []
    for rate in rates:
        with Lab(nodes=2, rate=rate) as lab:
            place = LabPlace(lab, 1)
            for collective in collectives:
                for field in FIELDS:
                    work: list[int] = []
                    for wish in WISHES:
                        argv = [str(program), "--collective", collective, "--field", field, "--verify",
                                "--sizes", ",".join(map(str, sizes)), "--repeats", str(repeats),
                                "--warmup", str(WARMUP)]  # fmt: skip
                        argv += ["--work-iterations", ",".join(map(str, work))] if work else []
                        found = list(_run(place, argv, wish))
                        work = work or [row["work_iterations"] for row in found]
                        case = {"rate": rate, "collective": collective, "field": field, "wish": wish}
                        rows += [case | row for row in found]
    for row in rows:
        raw = next(r for r in rows if _case(r) == _case(row) and r["wish"] == RAW)
        row["t_pure_ratio"] = round(row["t_pure_ns"] / raw["t_pure_ns"], 3)
        row["t_total_ratio"] = round(row["t_total_ns"] / raw["t_total_ns"], 3)
        row["predicted_ratio"] = _predicted(row) if row["wish"] not in (RAW, AUTO) else None
    return {"meta": comparison.base_meta([MPI]) | {"repeats": repeats, "rates": list(rates)}, "rows": rows}


def _case(row: dict) -> tuple:
    return row["rate"], row["collective"], row["field"], row["bytes"]


def _predicted(row: dict) -> float:
    """t_pure against raw, by the planner's model of a plain server with links of that rate."""
    machine = machines.changed(machines.default(), link=row["rate"])
    machine["network"]["burst_bytes"] = BURST_BYTES
    coded = compressing.changed(machine, row["wish"].split(":")[0], row["coded_ratio"])
    where = model.Placement(2, cores=[[0], [1]], service_cores=[0, 1])
    raw, with_it = (
        model.bench(each, where, row["collective"], row["bytes"], model.DPU, 0).pure for each in (machine, coded)
    )
    return round(with_it / raw, 3)


def _run(place: LabPlace, argv: Sequence[str], wish: str) -> Iterator[dict]:
    env = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_SERVICE_SHARE": "1", "OFFPATH_COMPRESS": wish}
    output, stats = comparison.run_for_json(place, MPI, argv, True, env)
    coded, wire = (sum(rank.get(f"{name}_bytes", 0) for rank in stats) for name in ("coded", "wire"))
    for row in output["rows"]:
        yield {
            "bytes": row["bytes"], "verified": row["verified"], "work_iterations": row["work_iterations"],
            "t_pure_ns": row["t_pure_ns"], "t_total_ns": row["t_total_ns"], "efficiency": row["efficiency"],
            "coded_ratio": round(coded / wire, 3) if wire else 1.0,
        }  # fmt: skip


def show(result: dict) -> None:
    table = Table(
        "rate", "what", "size", "field", "wish", "ratio", "t_pure", "of raw", "predicted", "t_total", "efficiency",
        title="Collectives of two nodes, compressed on their way", title_justify="left",
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for row in result["rows"]:
        table.add_row(
            row["rate"], row["collective"], size_text(row["bytes"]), row["field"], row["wish"],
            f"{row['coded_ratio']:.2f}", ms_text(row["t_pure_ns"]), f"{row['t_pure_ratio']:.3f}",
            f"{row['predicted_ratio']:.3f}" if row["predicted_ratio"] else "",
            f"{row['t_total_ratio']:.3f}", f"{row['efficiency']:.3f}",
        )  # fmt: skip
    console.out.print(table)
