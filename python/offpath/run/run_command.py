# SPDX-License-Identifier: BSD-3-Clause
"""`offpath run`: any program, with its collectives offloaded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, handover, processes  # fmt: skip
from offpath.base.paths import paths
from offpath.launch import checks, cluster_files, injection, memory, mpis, own_rank, policy_table, stats  # fmt: skip
from offpath.launch.closing_line import closing_line
from offpath.launch.injection import OffloadOptions
from offpath.telemetry import batch_job, prometheus, recording, wires

BLOCKING = ("alltoall", "alltoallv", "allgather", "allgatherv", "bcast", "allreduce")

app = commands.alone()


@app.command(context_settings=commands.PASSES_ON, rich_help_panel=commands.FIRST)
def run(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="The program, with its mpirun if it has one.")
    ],
    policy: Annotated[
        Optional[str],
        typer.Option(
            help="What goes to the DPU, like ialltoall:512K-inf:dpu,ialltoallv:host; auto: what pays, found out "
            "while the program runs, but for the rows given with it. Default: what was measured."
        ),
    ] = None,
    policy_file: Annotated[
        Optional[str], typer.Option(metavar="FILE", help="Policy of this machine, put before --policy; none: no file.")
    ] = None,
    blocking: Annotated[
        Optional[str],
        typer.Option(metavar="LIST", help="Blocking calls to offload too, like alltoall,bcast, or all. Default: none."),
    ] = None,
    cores: Annotated[Optional[str], typer.Option(metavar="LIST", help="Cores for the service, like 2,3.")] = None,
    share: Annotated[bool, typer.Option("--share", help="The service may use the program's own cores.")] = False,
    workers: Annotated[Optional[int], typer.Option(min=1, help="Threads of the service on each node.")] = None,
    compress: Annotated[
        Optional[str],
        typer.Option(
            metavar="off|auto|sample|CODEC",
            help="Compress what goes to other nodes: auto, where it pays, or always with lz4, zstd, deflate or zlib; "
            "numbers with a loss by zfp:abs=1e-6 or sz3:rel=1e-4.",
        ),
    ] = None,
    dpus: Annotated[
        Optional[str],
        typer.Option(
            metavar="FILE|LIST",
            help="DPUs that are other machines, see `offpath dpus`: a file, or [HOST=]DPU:PORT,...; none: none.",
        ),
    ] = None,
    dpus_required: Annotated[
        bool, typer.Option("--dpus-required", help="Start nothing unless each of them answers from here.")
    ] = False,
    off: Annotated[bool, typer.Option("--off", help="Run natively: the other side of a comparison.")] = False,
    stats_file: Annotated[
        Optional[str], typer.Option("--stats", metavar="FILE", help="Append one JSON line per rank to FILE.")
    ] = None,
    log: Annotated[Optional[str], typer.Option(metavar="LEVEL", help="off, error, warn, info or debug.")] = None,
    trace: Annotated[
        Optional[Path], typer.Option(metavar="FILE", help="Record every operation; FILE opens in Perfetto.")
    ] = None,
    trace_sample: Annotated[
        Optional[int],
        typer.Option(
            min=1, metavar="N", help="Record one of N operations of each call site and communicator. Default: every."
        ),
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Record every operation and say what was hidden and what was lost.")
    ] = False,
    metrics: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="FILE|PORT",
            help="For Prometheus: write the counters to FILE at the end; serve them on [HOST:]PORT during the run.",
        ),
    ] = None,
    job_name: Annotated[
        Optional[str],
        typer.Option(metavar="NAME", help="What metrics and traces call this run. Default: the scheduler's job name."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary at the end.")] = False,
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
    checks.settings(policy, cores)
    if not off:
        checks.numbers()
    if stats_file:
        stats_file = os.path.abspath(stats_file)
        recording.check_writable(stats_file)
    addresses, metric_files = _destinations(metrics or [])
    for file in (trace, *metric_files):
        if file is not None:
            recording.check_writable(file)
    recorded = (trace is not None or summary) and not off
    if off and (trace is not None or summary):
        console.note(f"{'--trace' if trace is not None else '--summary'} records nothing with --off.")
    if trace_sample is not None and trace is None and not summary:
        raise typer.BadParameter("--trace-sample is about a recording (there is none). Give --trace or --summary, too.")
    automatic, policy = policy_table.split_automatic(policy)
    adapt = "on" if automatic else os.environ.get("OFFPATH_MPI_ADAPT")
    launched = mpis.launcher_kind(command[0])
    first = launched is not None or own_rank.leads()  # others of a job have nothing to say, and nothing to keep
    policy_file = policy_file or _policy_of_cluster(command)
    job = memory.job_of(command) if first and adapt in ("on", "freeze") and not off else None
    advice = None
    if job is not None:  # the machine's file is advice then, too
        file = policy_file or os.environ.get(policy_table.FILE_VARIABLE)
        advice = policy_table.advice(file, memory.rows(job))
        policy_file = policy_table.NO_FILE
    options = OffloadOptions(
        not off, policy, policy_file, adapt, advice, _checked_blocking(blocking), cores, share, workers,
        stats_file or os.environ.get("OFFPATH_STATS_FILE"), _checked_level(log), checks.compression(compress),
    )  # fmt: skip
    chosen = injection.variables(options, paths(), openshmem=mpis.starts_openshmem(command[0]))
    if (dpus is not None or dpus_required) and not off:
        from offpath.dpu.dpus_command import variables as dpu_variables  # who has none need not wait for it

        chosen |= dpu_variables(dpus, dpus_required)
    if recorded and trace_sample is not None:
        chosen[recording.SAMPLE_VARIABLE] = str(trace_sample)
    after = job is not None or recorded or addresses or metric_files or not (off or quiet)
    if not first or not after:
        if recorded:
            chosen[recording.VARIABLE] = str(handover.ELSEWHERE)
        argv, extra = injection.with_variables(command, chosen)
        processes.become(argv, os.environ | extra)
    if not off:
        checks.note_misspelt()
    with contextlib.ExitStack() as open_files:
        read_from = None
        if not off:  # not the user's own file: other runs may write into it at the same time
            beside = Path(options.stats_file) if options.stats_file else None
            folder = open_files.enter_context(handover.folder(beside))
            read_from = chosen["OFFPATH_STATS_FILE"] = open_files.enter_context(stats.private_file(folder))
        where = open_files.enter_context(recording.prefix(trace)) if recorded else None
        if where is not None:
            chosen[recording.VARIABLE] = str(where)
        argv, extra = injection.with_variables(command, chosen)
        label = batch_job.current(job_name)
        for address in addresses:
            open_files.enter_context(_served(address, label))
        samples = wires.Samples()
        sampler = wires.Sampler(samples, str(os.getpid()))
        with sampler if trace is not None and recorded else contextlib.nullcontext():
            result = processes.run(argv, os.environ | extra, capture=False, own_session=False)
        ranks = stats.read(read_from) if read_from else []
        if read_from and options.stats_file:
            with recording.kept(options.stats_file):
                stats.append(read_from, options.stats_file)
        if job is not None:
            memory.keep(job, ranks)
        if not off and not quiet:
            started = own_rank.job_size() if launched is None else None
            console.note(closing_line(ranks, launched, started, command, result.ending))
        for file in metric_files:
            with recording.kept(str(file)):
                prometheus.write(ranks, file, label)
        if where is not None:
            recording.finish(where, trace, summary, samples, ranks, label)
    raise typer.Exit(result.exit_status)


def _policy_of_cluster(command: list[str]) -> str | None:
    """Where `offpath tune --launch` has found out what this cluster's rows are for the program's MPI."""
    if os.environ.get(policy_table.FILE_VARIABLE) or cluster_files.name() is None:
        return None
    file = cluster_files.policy_file(mpis.of_command(command))
    return str(file) if file else None


def _destinations(metrics: list[str]) -> tuple[list[tuple[str, int]], list[Path]]:
    """The addresses and the files among what --metrics gave."""
    addresses, files = [], []
    for where in metrics:
        address = prometheus.address(where)
        if address is None:
            files.append(Path(where))
        else:
            addresses.append(address)
    return addresses, files


@contextlib.contextmanager
def _served(address: tuple[str, int], label: batch_job.BatchJob) -> Iterator[None]:
    from offpath.telemetry import metrics_server  # a program without it need not wait for an HTTP server's modules

    with metrics_server.serving(*address, label) as url:
        console.note(f"metrics at {url}")
        yield


def _checked_blocking(names: str | None) -> str | None:
    words = [] if names in (None, "all", "none") else [word.strip() for word in names.split(",")]
    for word in words:
        if word not in BLOCKING:
            raise typer.BadParameter(
                f"'{word}' is not offloaded when blocking. Give all, none or {', '.join(BLOCKING)}."
            )
    return ",".join(words) or names


def _checked_level(level: str | None) -> str | None:
    levels = ("off", "error", "warn", "info", "debug")
    if level is not None and level not in levels:
        raise typer.BadParameter(f"'{level}' is not a level. Give one of {', '.join(levels)}.")
    return level
