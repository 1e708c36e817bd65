# SPDX-License-Identifier: BSD-3-Clause
"""`offpath run`: any program, with its collectives offloaded."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import typer

from offpath.base import commands, console, handover, processes
from offpath.base.paths import paths
from offpath.launch import checks, cluster_files, injection, memory, mpis, own_rank, policy_table
from offpath.launch.injection import OffloadOptions
from offpath.launch.job import Job, job_of
from offpath.run import supervision
from offpath.run.run_options import Offload, Service, Telling
from offpath.telemetry import recording as records
from offpath.telemetry.recording import Recording

app = commands.alone()


@app.command(context_settings=commands.PASSES_ON, rich_help_panel=commands.FIRST)
@commands.by_concern
def run(
    command: commands.CommandLine,
    offload: Offload,
    service: Service,
    recording: Recording,
    telling: Telling,
) -> None:
    """Run a program with its MPI collectives offloaded. Nothing is recompiled.

    COMMAND is what you would type without Offpath. mpirun and mpiexec of Open MPI and MPICH are told to pass what is
    needed on to all ranks; under srun it is in the environment that every rank gets. A launcher may also start
    `offpath run` itself, once for each rank; then only the first rank's says anything. One line at the end, on stderr,
    says what was offloaded and what was not and why, and what to try. Ends with COMMAND's own exit status.

    Later rows of the policy win: the measured ones, then this machine's or cluster's file (`offpath tune` writes it),
    then --policy.
    `offpath info --policy` shows what they come to. A blocking call has no computation to hide behind, so those stay on
    the host unless --blocking names them.

    Examples:

        offpath run -- mpirun -np 4 ./my_program

        offpath run --policy "*:1M-inf:dpu,ibcast:dpu=chain" --blocking bcast,allreduce -- mpirun -np 4 ./my_program

        offpath run --policy auto,ibcast:host -- mpirun -np 4 ./my_program

        offpath run --share --policy ialltoall:1M-inf:dpu -- mpiexec -n 8 ./my_program input.dat

        offpath run --trace trace.json --summary -- mpirun -np 4 ./my_program

        offpath run --dpus dpus.txt -- mpirun -hostfile hosts ./my_program

        offpath run --metrics 9400 --metrics end.prom -- mpirun -np 4 ./my_program

        srun -n 64 offpath run -- ./my_program
    """
    mpis.executable(command[0])
    checks.settings(offload.policy, service.cores)
    if not offload.off:
        checks.numbers()
    telling.check()
    recording = recording.checked(offload.off)
    # Others of a job have nothing to say, and nothing to keep.
    first = mpis.launcher_kind(command[0]) is not None or own_rank.leads()
    inside = None if offload.off else mpis.statically_linked(command)
    if inside is not None:  # with ranks on both sides of it nobody would leave MPI_Init
        offload, recording = replace(offload, off=True), Recording()
        if first and not telling.quiet:
            console.note(
                f"all MPI calls stay native: {inside} has its MPI linked into itself (nothing comes in front of its "
                "functions). Link it with the MPI's shared library."
            )
    rows = _rows(command, offload, first)
    options = OffloadOptions(
        not offload.off, rows.policy, rows.file, rows.adapt, rows.advice, offload.blocking_calls(), service.cores,
        service.share, service.quiet_waits, service.workers, telling.stats(), telling.log,
        checks.compression(offload.compress),
    )  # fmt: skip
    chosen = injection.variables(options, paths(), openshmem=mpis.starts_openshmem(command[0]))
    if not offload.off:
        chosen |= service.dpu_variables()
    chosen |= recording.variables()
    waits = rows.job or recording.asked or telling.metrics or not (offload.off or telling.quiet)
    if not first or not waits:
        if recording.asked:
            chosen[records.VARIABLE] = str(handover.ELSEWHERE)
        argv, extra = injection.with_variables(command, chosen)
        processes.become(argv, os.environ | extra)
    if not offload.off:
        checks.note_misspelt()
    raise typer.Exit(supervision.run(command, chosen, offload.off, recording, telling, rows.job))


@dataclass(frozen=True)
class Rows:
    """What decides host or DPU."""

    policy: str | None
    file: str | None
    adapt: str | None
    advice: str | None = None  # from earlier runs, and from the machine's file, which is advice then, too
    job: Job | None = None  # whose later runs learn from this one


def _rows(command: list[str], offload: Offload, first: bool) -> Rows:
    given = os.environ.get("OFFPATH_POLICY") if offload.policy is None else offload.policy
    automatic, policy = policy_table.split_automatic(given)
    adapt = "on" if automatic else os.environ.get("OFFPATH_MPI_ADAPT")
    file = offload.policy_file or _policy_of_cluster(command)
    if not first or offload.off or adapt not in ("on", "freeze"):
        return Rows(policy, file, adapt)
    job = job_of(command)
    advice = policy_table.advice(file or os.environ.get(policy_table.FILE_VARIABLE), memory.rows(job))
    return Rows(policy, policy_table.NO_FILE, adapt, advice, job)


def _policy_of_cluster(command: list[str]) -> str | None:
    """Where `offpath tune --launch` has found out what this cluster's rows are for the program's MPI."""
    if os.environ.get(policy_table.FILE_VARIABLE) or cluster_files.name() is None:
        return None
    file = cluster_files.policy_file(mpis.of_command(command))
    return str(file) if file else None
