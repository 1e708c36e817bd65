# SPDX-License-Identifier: BSD-3-Clause
"""`offpath devices`: what a program would see."""

from __future__ import annotations

import json

from offpath.base import commands, console
from offpath.base.sizes import rough_size_text
from offpath.base.tables import Table
from offpath.dpu import listing

app = commands.alone()


@app.command(rich_help_panel=commands.LOOK)
def devices(as_json: commands.AsJson = False) -> None:
    """List the devices that a program sees here, in the order of their numbers, and those that could be added.

    A program numbers only devices of the architectures that it has images for: first all x86_64, then all aarch64.

    Examples:

        offpath devices

        OFFPATH_DEVICES=local,arm=10.0.0.2:7001 offpath devices --json
    """
    rows = listing.collect()
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    table = Table(
        "number", "name", "kind", "arch", "cores", "memory", "address", "state", "limits", keys=2, box=None,
        pad_edge=False,
    )
    for row in rows:
        table.add_row(
            "-" if row["number"] is None else str(row["number"]), row["name"], row["kind"], row["architecture"],
            str(row["cores"] or "-"), rough_size_text(row["memory_bytes"]) if row["memory_bytes"] else "-",
            row["address"], row["state"],
            f"{programs} programs" if (programs := row["limits"].get("programs")) else "-",
        )  # fmt: skip
    console.out.print(table if rows else "There are no devices: target regions run on the host.")
    for row in rows:
        if "problem" in row:
            console.note(row["problem"])
        if "entry" in row:
            console.note(f"{row['name']} runs, but is not in OFFPATH_DEVICES. Add: {row['entry']}")
