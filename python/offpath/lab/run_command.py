# SPDX-License-Identifier: BSD-3-Clause
"""`offpath lab run`: an MPI program on a lab, by its own mpirun."""

import contextlib
from typing import Annotated, Optional

import typer

from offpath.base import commands, console
from offpath.base.oldest import StrEnum
from offpath.lab import state
from offpath.lab.cluster import Lab
from offpath.launch import checks, mpis, policy_table
from offpath.launch.closing_line import closing_line
from offpath.telemetry import recording as records
from offpath.telemetry import wires
from offpath.telemetry.recording import Quiet, Recording

DEFAULT_NAME = "lab"
NameArgument = Annotated[str, typer.Argument(help="Which lab.", metavar="[NAME]")]

NameOption = Annotated[str, typer.Option("--name", help="Which lab. Several can be up at once.")]


class MpiChoice(StrEnum):
    openmpi = mpis.OPENMPI
    mpich = mpis.MPICH


@commands.by_concern
def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM", help="The MPI program.")],
    recording: Recording,
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
    quiet: Quiet = False,
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
    if recording.asked and not offload:
        raise typer.BadParameter("--trace and --summary are about offloaded runs (this one is not). Give --offload.")
    recording.checked(off=False)
    checks.settings(policy, None)
    lab = Lab.attach(name)
    kind = mpi.value if mpi else mpis.program_mpi_or_default(command)
    if ppn is None:
        ppn = 1 if np is None else max(1, -(-np // lab.plan.node_count))
    automatic, rows = policy_table.split_automatic(policy)
    env = recording.variables() | ({"OFFPATH_POLICY": rows} if rows else {})
    if automatic:
        env["OFFPATH_MPI_ADAPT"] = "on"
    samples = wires.Samples()
    with contextlib.ExitStack() as parts:
        where = parts.enter_context(recording.prefix())
        with contextlib.ExitStack() as samplers:
            if where is not None:
                env[records.VARIABLE] = str(where)
                for node in lab.plan.nodes:
                    samplers.enter_context(wires.Sampler(samples, None, lab.plan.runtime_folder(node)))
            result = lab.mpirun(kind, ppn, command, offload, env, np=np, capture=False)
        if offload and not quiet:
            console.note(closing_line(result.stats, kind, status=result.ending))
        recording.finish(where, samples, result.stats)
    raise typer.Exit(result.exit_status)
