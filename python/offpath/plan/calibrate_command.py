# SPDX-License-Identifier: BSD-3-Clause
"""`offpath calibrate`: measures this machine, or the nodes of a job, and writes the machine file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.launch import cluster_files, mpis
from offpath.places import allocation, asked, comparison
from offpath.places.asked import OnNodes
from offpath.plan import calibrate as fitting

app = commands.alone()


@app.command(rich_help_panel=commands.MEASURE)
@commands.by_concern
def calibrate_command(
    there: OnNodes,
    mpi: Annotated[Optional[str], typer.Option(help="openmpi or mpich. Default: the launcher's, or openmpi.")] = None,
    nodes: Annotated[int, typer.Option(min=2, help="Nodes of the lab; of a job, from 4 on: where links cross.")] = 2,
    rate: asked.Rate = "1gbit",
    repeats: Annotated[int, typer.Option(min=3, help="Repeats of each benchmark.")] = fitting.REPEATS,
    launches: Annotated[int, typer.Option(min=1, help="Launches of each.")] = fitting.LAUNCHES,
    loopback: asked.Loopback = False,
    output: Annotated[
        Optional[Path],
        typer.Option("-o", "--output", help="The machine file to write. Default: machine.json, or the cluster's."),
    ] = None,
) -> None:
    """Measure what the planner needs to know about this machine, and write it to a file.

    Copy, reduction and compute speed, wake-ups, and two cores copying at once are measured alone; rate and latency of
    the links and what MPI and the service cost come from a few runs of the benchmark in a lab (or on loopback). About
    a minute. The file is JSON and may be edited: docs/guide-planner.md says what each field is.

    With --launch it measures on two nodes of your job, over their network. The file is the cluster's then
    (~/.config/offpath/clusters/NAME/MPI/machine.json), and the planner finds it by itself.

    Examples:

        offpath calibrate --launch "srun -N 2 -n 2 --mpi=pmi2" --mpi mpich

        offpath calibrate --launch "mpirun -np {ranks} --map-by ppr:1:node -hostfile hosts" --cluster hall --nodes 4

        offpath calibrate -o machine.json

        offpath calibrate --mpi mpich --rate 250mbit -o lab.json
    """
    if mpi == comparison.BOTH:
        raise UserError("one MPI at a time is calibrated. Give --mpi openmpi or --mpi mpich.")
    started = allocation.launcher(there, mpi or comparison.BOTH)
    if started is not None:
        file = output or cluster_files.file(started.cluster, started.mpi, cluster_files.MACHINE)
        files.writable_file(file, "the machine file")
        machine = _calibrate_job(started, nodes, repeats, launches)
    else:
        [kind] = comparison.chosen_mpis(mpi or mpis.OPENMPI)
        file = output or Path("machine.json")
        files.writable_file(file, "--output")
        built(paths().preload_library)
        with comparison.place(nodes, 1, rate, loopback) as where:
            machine = fitting.calibrate(where, kind, repeats, launches)
    try:
        files.write_json(file, machine)
    finally:  # whichever of both fails
        show(machine)
    console.note(f"written to {file}")


def _calibrate_job(started: allocation.Launcher, nodes: int, repeats: int, launches: int) -> dict:
    """On two nodes, and where `nodes` are more and can be asked for, on those as well."""
    where = allocation.place(started, measure=[str(paths().tool("offpath-machine"))])
    if where.ppn != 1 or (len(where.nodes) != 2):
        raise UserError(
            f"{len(where.nodes)} nodes have {where.ppn} ranks each (a machine is measured with two ranks on two "
            "nodes). Correct --launch."
        )
    machine = fitting.calibrate(where, started.mpi, repeats, launches)
    if nodes >= fitting.CROSSING_NODES and started.counts_nodes:
        several = allocation.place(started, nodes)
        fitting.fit_crossings(machine, several, started.mpi, repeats, launches)
    else:
        console.note(f"links that cross were not measured. For that give --nodes {fitting.CROSSING_NODES} and "
                     "{nodes} in --launch.")  # fmt: skip
    return machine


def show(machine: dict) -> None:
    for section in ("network", "memory", "native", "service"):
        for field in machine[section]:
            found = machine[section][field]
            if isinstance(found, dict):
                text = f"{found['median']:.4g} (min {found['min']:.4g})"
            else:
                text = f"{found:.4g}" if isinstance(found, float) else str(found)
            console.out.print(f"{section + '.' + field:34} {text}")
