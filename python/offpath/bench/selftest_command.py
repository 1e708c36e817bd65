# SPDX-License-Identifier: BSD-3-Clause
"""`offpath selftest`: does an installation work, here or on the nodes of a job?"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Optional

import typer

from offpath.base import commands, console
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.base.version import __version__
from offpath.bench import selftest_nodes, selftest_runs
from offpath.bench.selftest_nodes import LOSS, NO, OK, Row
from offpath.launch import cluster_files, mpis
from offpath.places import allocation, asked, comparison
from offpath.places.allocation import AllocationPlace, Launcher
from offpath.places.asked import OnNodes

STYLES = {OK: "green", LOSS: "yellow", NO: "bold red"}
HERE = "here"  # where no cluster has a name

app = commands.alone()


@app.command(rich_help_panel=commands.LOOK)
def selftest_command(
    launch: Annotated[
        Optional[str],
        typer.Option(
            metavar="WORDS",
            help="On the nodes of your job: what starts ranks there, like 'srun --mpi=pmi2'. Default: two ranks here.",
        ),
    ] = None,
    mpi: asked.Mpis = comparison.BOTH,
    as_json: commands.AsJson = False,
) -> None:
    """Say whether Offpath works here, or on the nodes of a job, and what is in its way. Run it once it is installed.

    It looks at each node (parts, memory, limits, clocks), then runs a program that checks all its results: without
    Offpath, with it, over each network, and while a service is killed. A minute or less. Each row is *ok*, *loss*
    (it works, but something is lost) or *no*, and says what to do. Ends with 1 where a row is *no*.

    Examples:

        offpath selftest

        offpath selftest --launch "srun -N 2 -n 2 -c 2 --mpi=pmi2" --mpi mpich

        offpath selftest --launch "mpirun -np 2 --map-by ppr:1:node -hostfile hosts" --json
    """
    found: list[Row] = []
    for row in _rows(_launchers(launch, mpi)):
        found.append(row)
        if not as_json:
            _show(row)
    count = Counter(row.verdict for row in found)
    if as_json:
        print(
            json.dumps({"offpath": __version__, "works": not count[NO], "rows": [vars(row) for row in found]}, indent=1)
        )
    elif count[NO]:
        console.note("it does not work: " + _named(found, NO))
    else:
        console.note("it works" + (f", with a loss: {_named(found, LOSS)}" if count[LOSS] else ""))
    raise typer.Exit(1 if count[NO] else 0)


def _launchers(launch: str | None, mpi: str) -> list[Launcher]:
    """One for each MPI. Raises UserError where nothing can be started."""
    built(paths().preload_library)
    cluster = cluster_files.name() or HERE
    if launch is not None:
        chosen = allocation.launcher(OnNodes(launch, cluster), mpi)
        return [chosen] if chosen else []
    words = {mpis.OPENMPI: ("--oversubscribe", "--bind-to", "none"), mpis.MPICH: ()}
    return [Launcher((mpis.launcher(kind), *words[kind], "-np", "2"), kind, cluster, None, False)
            for kind in comparison.chosen_mpis(mpi)]  # fmt: skip


def _rows(launchers: list[Launcher]) -> Iterator[Row]:
    """Of the nodes once: every MPI's launcher starts ranks on the same ones."""
    for number, chosen in enumerate(launchers):
        command = chosen.command(2, 1)
        facts = allocation.look(chosen, command, tried=True)
        if len(facts) < 2:
            raise UserError(f"{shlex.join(command)} starts one rank (it has nobody to talk to). Ask for two or more.")
        if number == 0:
            yield from selftest_nodes.rows(facts)
        names = sorted({each["node"] for each in facts})
        where = AllocationPlace(chosen, command, names, len(facts) // len(names), facts[0])
        yield from selftest_runs.rows(where, len(facts), all(each["rdma"] for each in facts))


def _named(found: list[Row], verdict: str) -> str:
    return "; ".join(row.what for row in found if row.verdict == verdict)


def _show(row: Row) -> None:
    style = STYLES[row.verdict]
    console.out.print(f"[{style}]{row.verdict:<5}[/] ", end="")
    console.out.print(f"{row.what}: {row.found}", markup=False, soft_wrap=True)
    if row.do:
        console.out.print(f"      {row.do}", markup=False, soft_wrap=True)
