# SPDX-License-Identifier: BSD-3-Clause
"""`offpath plan tables`: published tables of offloaded applications, predicted from their host-only columns.

Source: the tables of Octopus and P3DFFT++ with MVAPICH2-DPU; seconds per process, average.
Two predictions, and what they assume:

  structure   only the host-only column and the program's structure. Of the time spent waiting for nonblocking
              communication the part (v - 1)/v is hidden, v being the exchanges in flight that a wait can overlap with.
              Time in blocking calls stays.
  transfer    every row shrinks as it did in the other column of the same program, and so does the time outside MPI:
              says whether one measurement carries over to another configuration.
"""

import json
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.table import Table

from offpath.base import console

IN_FLIGHT = {"Octopus": 2, "P3DFFT++": 4}  # double buffering; four variables
WAITS = ("Waitall", "Waitany")
APPLICATION, COMMUNICATION = "Application", "All communications"


@dataclass(frozen=True)
class Column:
    program: str
    name: str
    host: dict
    offloaded: dict


def _column(program: str, name: str, rows: str) -> Column:
    parsed = [line.strip().rsplit(maxsplit=2) for line in rows.strip().splitlines()]
    return Column(program, name, {row: float(a) for row, a, _ in parsed}, {row: float(b) for row, _, b in parsed})


PUBLISHED = (
    _column("Octopus", "32 nodes, 8P4T", """
        Application 637.28 455.49
        All communications 245.99 138.15
        Allgatherv 126.38 82.74
        Waitall 57.60 32.02
        Alltoall 37.89 13.87
        Allreduce 7.44 4.96
        Other 16.68 4.56"""),
    _column("Octopus", "32 nodes, 4P8T", """
        Application 585.14 461.04
        All communications 230.66 142.37
        Allgatherv 102.17 76.26
        Waitall 73.65 41.40
        Alltoall 30.03 17.45
        Allreduce 2.88 4.05
        Other 21.93 3.21"""),
    _column("P3DFFT++", "16 nodes", """
        Application 49.53 36.39
        All communications 17.58 7.54
        Waitany 10.20 4.88
        Ialltoallv 2.98 1.38
        Other 4.40 1.28"""),
    _column("P3DFFT++", "32 nodes", """
        Application 26.07 20.57
        All communications 10.15 5.46
        Waitany 6.32 3.22
        Ialltoallv 1.65 0.77
        Other 2.19 1.47"""),
)  # fmt: skip


def structure(column: Column) -> dict:
    """From the host-only column alone."""
    in_flight = IN_FLIGHT[column.program]
    kept = {row: time / in_flight if row in WAITS else time for row, time in _calls(column.host).items()}
    return _with_totals(kept, column.host[APPLICATION] - column.host[COMMUNICATION])


def transfer(column: Column, other: Column) -> dict:
    """As the other column of that program changed."""
    kept = {row: time * other.offloaded[row] / other.host[row] for row, time in _calls(column.host).items()}
    outside = [side[APPLICATION] - side[COMMUNICATION] for side in (other.host, other.offloaded)]
    return _with_totals(kept, (column.host[APPLICATION] - column.host[COMMUNICATION]) * outside[1] / outside[0])


def _calls(rows: dict) -> dict:
    return {row: time for row, time in rows.items() if row not in (APPLICATION, COMMUNICATION)}


def _with_totals(calls: dict, outside: float) -> dict:
    total = sum(calls.values())
    return {APPLICATION: outside + total, COMMUNICATION: total, **calls}


def predictions() -> list[dict]:
    rows = []
    for column in PUBLISHED:
        [other] = [each for each in PUBLISHED if each.program == column.program and each is not column]
        ways = {"structure": structure(column), "transfer": transfer(column, other)}
        for row, published in column.offloaded.items():
            entry = {
                "program": column.program, "column": column.name, "row": row, "host_s": column.host[row],
                "published_s": published,
            }  # fmt: skip
            for way, predicted in ways.items():
                entry[f"{way}_s"] = round(predicted[row], 2)
                entry[f"{way}_error"] = round(predicted[row] / published - 1, 4)
            rows.append(entry)
    return rows


def tables_command(as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False) -> None:
    """Predict the offloaded columns of published tables from the host-only ones, beside the published figures.

    *structure* knows the host-only column and how many exchanges the program has in flight; *transfer* scales each row
    as the other published configuration of the program changed. Both are stated assumptions, not fits to the column.
    """
    rows = predictions()
    if as_json:
        print(json.dumps({"rows": rows}, indent=1))
        return
    for column in PUBLISHED:
        table = Table(
            "seconds", "host", "published", "structure", "error", "transfer", "error",
            title=f"{column.program}, {column.name}",
        )  # fmt: skip
        for row in rows:
            if (row["program"], row["column"]) == (column.program, column.name):
                table.add_row(
                    row["row"], f"{row['host_s']:.2f}", f"{row['published_s']:.2f}", f"{row['structure_s']:.2f}",
                    f"{row['structure_error']:+.0%}", f"{row['transfer_s']:.2f}", f"{row['transfer_error']:+.0%}",
                )  # fmt: skip
        console.out.print(table)
    console.out.print(
        "structure: waits for nonblocking calls shrink to 1/v (v exchanges in flight: "
        + ", ".join(f"{program} {v}" for program, v in IN_FLIGHT.items())
        + "), all else stays. transfer: as the program's other configuration changed."
    )
