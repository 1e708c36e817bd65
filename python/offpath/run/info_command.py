# SPDX-License-Identifier: BSD-3-Clause
"""`offpath info`: what Offpath would use, and where each value came from."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.markup import escape
from rich.text import Text

from offpath.base import commands, config, console
from offpath.base.paths import Paths, paths
from offpath.base.sizes import size_text
from offpath.base.tables import Table
from offpath.base.version import __version__
from offpath.launch import cluster_files, mpis, policy_table
from offpath.launch.local import available_cores

COMPONENTS = {
    "service": lambda where: where.service,
    "policy reader": lambda where: where.policy_program,
    "preload library": lambda where: where.preload_library,
    "back end for Open MPI": lambda where: where.backend_library(mpis.OPENMPI),
    "back end for MPICH": lambda where: where.backend_library(mpis.MPICH),
    "back end for the MPI standard's ABI": lambda where: where.backend_library("abi"),
    "yield shim": lambda where: where.yield_library,
}

app = commands.alone()


@app.command(rich_help_panel=commands.LOOK)
def info(
    program: Annotated[Optional[str], typer.Argument(help="Say which MPI this program uses.")] = None,
    as_json: commands.AsJson = False,
    policy: Annotated[
        bool, typer.Option("--policy", help="Only what goes to the DPU: every row of the policy and where it is from.")
    ] = False,
    env: Annotated[
        bool, typer.Option("--env", help="Only the variables, as NAME=VALUE lines a shell can read.")
    ] = False,
) -> None:
    """Show the resolved configuration: variables, parts, transports, MPIs and cores.

    Examples:

        offpath info

        offpath info ./my_program

        OFFPATH_POLICY=ialltoall:1M-inf:dpu offpath info --env

        offpath info --policy > policy; OFFPATH_POLICY_FILE=policy offpath run -- mpirun -np 4 ./my_program
    """
    if policy:
        table = effective_policy(program)
        print(json.dumps(policy_json(table), indent=1) if as_json else policy_text(table))
        return
    if env:
        for row in config.resolved():
            print(f"{'' if row['value'] is not None else '# '}{row['name']}={row['value'] or ''}")
        return
    found = collect(program)
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        _show(found)


def collect(program: str | None = None) -> dict:
    where = paths()
    found = {
        "version": __version__,
        "prefix": str(where.prefix),
        "components": _components(where),
        "settings": config.resolved(),
        "unknown_variables": config.unknown(),
        "mpis": [vars(each) for each in mpis.installed()],
        "transports": _ucx_transports(),
        "cores": available_cores(),
        "cluster": _cluster(),
    }
    if program is not None:
        found["program"] = {"path": mpis.executable(program), **_mpi_of(mpis.executable(program))}
    return found


def effective_policy(program: str | None = None) -> policy_table.Table:
    """The measured rows and what overrides them here; of a cluster those for the program's MPI. Raises UserError for
    rows that the ranks would refuse."""
    rows, file = (os.environ.get(name) for name in ("OFFPATH_POLICY", policy_table.FILE_VARIABLE))
    kind = mpis.of_command([mpis.executable(program)]) if program else None
    of_cluster = cluster_files.policy_file(kind) if program and not file else None
    return policy_table.parse(policy_table.sources(rows, file or (str(of_cluster) if of_cluster else None)))


def _cluster() -> dict | None:
    """What was measured on the cluster we are on, by MPI."""
    name = cluster_files.name()
    if name is None:
        return None
    kept = {"machine": cluster_files.MACHINE, "policy": cluster_files.POLICY}
    return {"name": name} | {
        key: {mpi: str(file) for mpi, file in cluster_files.found(name, what).items()} for key, what in kept.items()
    }


def policy_json(table: policy_table.Table) -> dict:
    defaults = {
        each.name: [{"from_bytes": size, "algorithm": algorithm} for size, algorithm in each.defaults]
        for each in table.collectives
    }
    return {"rows": table.rows, "default_algorithms": defaults}


def policy_text(table: policy_table.Table) -> str:
    """One row per line, as a policy file may hold them: where a row is from is a comment."""
    width = max(len(row["text"]) for row in table.rows)
    lines = [f"{row['text']:<{width}}  # {row['source']}" for row in table.rows]
    lines += [
        "# Later rows win; what no row matches stays on the host. Sizes are all bytes that a rank sends or receives.",
        "# Measured at 1 Gbit/s: where a job finds a network twice as fast they begin at twice the size, and so on.",
        "# A row without =ALGORITHM means, for a rank's part of at least so many bytes:",
    ]
    meanings: dict[str, list[str]] = {}
    for each in table.collectives:
        if not each.algorithms:
            continue
        steps = [f"{algorithm} from {size_text(size)}" if size else algorithm for size, algorithm in each.defaults]
        others = sorted(set(each.algorithms) - {algorithm for _, algorithm in each.defaults})
        meaning = ", ".join(steps) + (f" (also: {', '.join(others)})" if others else "")
        meanings.setdefault(meaning, []).append(each.name)
    lines += [f"#   {', '.join(names)}: {meaning}" for meaning, names in meanings.items()]
    return "\n".join(lines)


def _components(where: Paths) -> dict[str, dict]:
    located = {name: locate(where) for name, locate in COMPONENTS.items()}
    return {name: {"path": str(path), "present": path.exists()} for name, path in located.items()}


def _mpi_of(program: str) -> dict:
    kind = mpis.mpi_of_program(program)
    if kind:
        by = " by the MPI standard's ABI" if mpis.uses_standard_abi(program) else ""
        return {"mpi": kind, "note": f"linked with {mpis.TITLES[kind]}{by}"}
    if mpis.uses_standard_abi(program):
        return {"mpi": None, "note": f"needs {mpis.STANDARD_ABI}, the MPI standard's ABI: {mpis.NO_MAKER}"}
    with open(program, "rb") as file:
        is_script = file.read(2) == b"#!"
    return {"mpi": None, "note": "a script: decided when it runs" if is_script else "not linked with an MPI"}


def _ucx_transports() -> list[dict]:
    """What ucx_info finds, as {"transport", "device"}; empty when UCX's tools are not installed."""
    tool = shutil.which("ucx_info")
    if not tool:
        return []
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
    try:
        text = subprocess.run([tool, "-d"], capture_output=True, text=True, timeout=20, env=environment).stdout
    except subprocess.TimeoutExpired:
        return []
    pairs = re.findall(r"Transport:\s*(\S+)\s*\n#\s*Device:\s*(\S+)", text)
    return [{"transport": transport, "device": device} for transport, device in pairs]


def _show(found: dict) -> None:
    def print_line(what) -> None:
        console.out.print(what, soft_wrap=isinstance(what, str))

    print_line(f"[bold]Offpath {found['version']}[/] in {escape(found['prefix'])}")
    for name, part in found["components"].items():
        print_line(
            f"  {name}: {escape(part['path'])}" + ("" if part["present"] else "  [red]missing; run: make build[/]")
        )
    mpi_list = [f"{mpis.TITLES[each['kind']]} {each['version']} ({escape(each['launcher'])})" for each in found["mpis"]]
    print_line(f"[bold]MPIs[/]  {', '.join(mpi_list) or 'none; run: make setup'}")
    transports = sorted({f"{each['transport']}/{each['device']}" for each in found["transports"]})
    print_line(f"[bold]Transports[/]  {', '.join(transports) or 'unknown (ucx_info is not installed)'}")
    print_line(f"[bold]Cores[/]  {','.join(map(str, found['cores']))}")
    if found["cluster"]:
        kept = [f"{key} of {mpis.TITLES.get(mpi, mpi)}: {escape(file)}"
                for key in ("machine", "policy") for mpi, file in found["cluster"][key].items()]  # fmt: skip
        said = "; ".join(kept) or "nothing was measured on it yet"
        print_line(f"[bold]Cluster[/]  {found['cluster']['name']}; {said}")
    if "program" in found:
        print_line(f"[bold]{escape(Path(found['program']['path']).name)}[/]  {escape(found['program']['note'])}")
    table = Table("variable", "value", "meaning", box=None, pad_edge=False)
    for row in found["settings"]:
        value = "-" if row["value"] is None else row["value"]
        table.add_row(row["name"], Text(value, "bold" if row["source"] == "environment" else ""), row["help"])
    print_line(table)
    for name in found["unknown_variables"]:
        print_line(f"[yellow]{name} is set, but nothing reads it. Check the spelling.[/]")
