# SPDX-License-Identifier: BSD-3-Clause
"""`offpath lab run`: an MPI program on a lab, by its own mpirun."""

import contextlib
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import console
from offpath.base.oldest import StrEnum
from offpath.lab import state
from offpath.lab.cluster import Lab
from offpath.launch import checks, mpis, policy_table
from offpath.launch.closing_line import closing_line
from offpath.telemetry import recording, wires

DEFAULT_NAME = "lab"

NameOption = Annotated[str, typer.Option("--name", help="Which lab. Several can be up at once.")]


class MpiChoice(StrEnum):
    openmpi = mpis.OPENMPI
    mpich = mpis.MPICH


def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM", help="The MPI program.")],
    name: NameOption = DEFAULT_NAME,
    mpi: Annotated[Optional[MpiChoice], typer.Option(help="Default: the MPI the program is linked with.")] = None,
    np: Annotated[Optional[int], typer.Option("--np", help="Ranks in all.")] = None,
    ppn: Annotated[
        Optional[int], typer.Option("--ppn", help="Ranks per node. Default: 1, or as many as --np needs.")
    ] = None,
    offload: Annotated[bool, typer.Option("--offload/--host", help="With Offpath, or the MPI alone.")] = False,
    policy: Annotated[
        Optional[str], typer.Option(help="What goes to the DPU, like ialltoall:512K-inf:dpu; auto: what pays.")
    ] = None,
    trace: Annotated[
        Optional[Path], typer.Option(metavar="FILE", help="Record every operation; FILE opens in Perfetto.")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Record every operation and say what was hidden and what was lost.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line at the end.")] = False,
) -> None:
    """Run an MPI program on a lab, with its own mpirun. Ends with the status of mpirun.

    Each node's ranks are pinned to the node's core. With --offload the node's service runs in the DPU's namespace, on
    the same core: both sides of a comparison use the same cores.

    Examples:

        offpath lab run -- ./my_program

        offpath lab run --ppn 2 --offload -- ./my_program --size 64

        offpath lab run --offload --trace trace.json -- ./my_program
    """
    state.require_root()
    if (trace is not None or summary) and not offload:
        raise typer.BadParameter("--trace and --summary are about offloaded runs (this one is not). Give --offload.")
    if trace is not None:
        recording.check_writable(trace)
    checks.settings(policy, None)
    lab = Lab.attach(name)
    kind = mpi.value if mpi else mpis.program_mpi_or_default(command)
    if ppn is None:
        ppn = 1 if np is None else max(1, -(-np // lab.plan.node_count))
    automatic, rows = policy_table.split_automatic(policy)
    env = {"OFFPATH_POLICY": rows} if rows else {}
    if automatic:
        env["OFFPATH_MPI_ADAPT"] = "on"
    samples = wires.Samples()
    with contextlib.ExitStack() as parts:
        where = parts.enter_context(recording.prefix(trace)) if trace is not None or summary else None
        with contextlib.ExitStack() as samplers:
            if where is not None:
                env[recording.VARIABLE] = str(where)
                for node in lab.plan.nodes:
                    samplers.enter_context(wires.Sampler(samples, None, lab.plan.runtime_folder(node)))
            result = lab.mpirun(kind, ppn, command, offload, env, np=np, capture=False)
        if offload and not quiet:
            console.note(closing_line(result.stats, kind, status=result.ending))
        if where is not None:
            recording.finish(where, trace, summary, samples, result.stats)
    raise typer.Exit(result.exit_status)
