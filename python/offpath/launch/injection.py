# SPDX-License-Identifier: BSD-3-Clause
"""What a program's environment must hold to be offloaded, and how it gets to every rank."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath.base.paths import Paths, built, paths
from offpath.launch import cluster_files, mpis, policy_table, srun

# Only the command line reads them.
SECRET = "OFFPATH_JOB_SECRET"
PRELOAD_OPTIONS = {mpis.OPENMPI: ("-x",), mpis.MPICH: ("-genv", "--genv", "-env", "--env")}
OURS_ONLY = ("OFFPATH_PREFIX", policy_table.FILE_VARIABLE, cluster_files.NAME_VARIABLE, cluster_files.MACHINE_VARIABLE)


@dataclass(frozen=True)
class OffloadOptions:
    """What a user chooses for one run; None leaves the variable as it is in the environment."""

    enabled: bool = True
    policy: str | None = None
    policy_file: str | None = None
    adapt: str | None = None
    memory: str | None = None
    blocking: str | None = None
    cores: str | None = None
    share: bool = False
    quiet_waits: bool = False
    workers: int | None = None
    stats_file: str | None = None
    log: str | None = None
    compress: str | None = None


def variables(
    options: OffloadOptions, where: Paths, environ: Mapping[str, str] = os.environ, *, openshmem: bool = False
) -> dict[str, str]:
    """LD_PRELOAD and the OFFPATH_* variables of one run, those already in `environ` included."""
    if not options.enabled:
        return {"OFFPATH_ENABLE": "0"}
    library = str(built(where.shmem_library) if openshmem else built(where.preload_library))
    chosen = {name: value for name, value in environ.items() if name.startswith("OFFPATH_")}
    for name in OURS_ONLY:
        chosen.pop(name, None)
    libraries = [library]
    if chosen.get("OFFPATH_MAPPED", "") not in ("", "0", "off", "allocated"):
        libraries.append(str(built(where.watch_library)))
    chosen["LD_PRELOAD"] = preload(libraries, environ)
    if where.service.exists():
        chosen.setdefault("OFFPATH_SERVICE_PATH", str(where.service))
    policy = chosen.get("OFFPATH_POLICY") if options.policy is None else options.policy
    policy_file = options.policy_file or environ.get(policy_table.FILE_VARIABLE)
    for name, value in (
        ("OFFPATH_POLICY", policy_table.for_ranks(policy, policy_file)),
        ("OFFPATH_MPI_ADAPT", options.adapt),
        ("OFFPATH_MPI_MEMORY", options.memory),
        ("OFFPATH_MPI_BLOCKING", options.blocking),
        ("OFFPATH_SERVICE_CORES", options.cores),
        ("OFFPATH_SERVICE_SHARE", "1" if options.share else None),
        ("OFFPATH_QUIET_WAITS", "1" if options.quiet_waits else None),
        ("OFFPATH_SERVICE_WORKERS", options.workers),
        ("OFFPATH_STATS_FILE", options.stats_file),
        ("OFFPATH_LOG", options.log),
        ("OFFPATH_COMPRESS", options.compress),
    ):
        if value is not None:
            chosen[name] = str(value)
    return chosen


def measured_run(env: Mapping[str, str], stats_file: str, share: bool) -> OffloadOptions:
    """For a run whose variables are all in `env`, but for the machine's policy file."""
    policy_file = env.get(policy_table.FILE_VARIABLE) or os.environ.get(policy_table.FILE_VARIABLE)
    return OffloadOptions(policy=env.get("OFFPATH_POLICY"), policy_file=policy_file, stats_file=stats_file, share=share)


def measured_variables(
    mpi: str, env: Mapping[str, str], options: OffloadOptions | None, yields: bool | None
) -> dict[str, str]:
    """Of the ranks of such a run. `options`: of measured_run(), None: without Offpath. `yields`: whether the library
    with which MPICH can yield does so while it waits; None: it is not there."""
    chosen, libraries = {}, []
    if options is not None:
        chosen = variables(options, paths(), memory_setting(env), openshmem=mpi == mpis.OPENSHMEM)
        libraries.append(chosen["LD_PRELOAD"])
        env = {name: value for name, value in env.items() if name != "OFFPATH_POLICY"}
    if yields is not None:
        libraries.append(str(built(paths().yield_library)))
        chosen["OFFPATH_LAB_YIELD"] = "1" if yields else "0"
    chosen |= env
    if libraries:
        chosen["LD_PRELOAD"] = preload(libraries, env)
    return chosen


def memory_setting(env: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What decides about libraries to preload: of `env`, or of what the job inherits."""
    return {name: value for name, value in {**environ, **env}.items() if name == "OFFPATH_MAPPED"}


def preload(libraries: Sequence[str], environ: Mapping[str, str] = os.environ) -> str:
    """LD_PRELOAD with `libraries` behind whatever is there: a tool the user chose keeps its place in front."""
    present = [entry for entry in environ.get("LD_PRELOAD", "").replace(" ", ":").split(":") if entry]
    return ":".join(present + [entry for entry in libraries if entry not in present])


def with_variables(argv: Sequence[str], chosen: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Puts `chosen` where the ranks that `argv` starts will see it.

    Returns the command line and what to add to its own environment. A launcher is told by its own options, so that
    it runs without our library itself and so that ranks on other nodes get the variables too. Command lines are
    everybody's to read, so it takes the job's secret from its environment.
    """
    kind = mpis.launcher_kind(argv[0])
    argv = _with_libraries(argv, kind, chosen.get("LD_PRELOAD", ""))
    secret = {name: value for name, value in chosen.items() if name == SECRET}
    told = {name: value for name, value in chosen.items() if name != SECRET}
    if kind == mpis.OPENMPI:
        by_name = [word for name in secret for word in ("-x", name)]
        return _insert_per_program(argv, [*by_name, *_flags("-x", told, joined=True)]), secret
    if kind == mpis.MPICH:  # which hands all its environment on
        return [argv[0], *_flags("-genv", told, joined=False), *argv[1:]], secret
    if kind == mpis.SLURM:  # it hands its environment on to every rank; the library is idle in it
        command, extra = srun.exporting(argv, chosen, os.environ)
        return command, chosen | extra
    mpis.refuse_submission(argv[0])
    return list(argv), dict(chosen)


def _with_libraries(argv: Sequence[str], kind: str | None, chosen: str) -> list[str]:
    """A launcher that is itself told what to preload believes that, and not us: our libraries go behind it there."""
    words = list(map(str, argv))
    libraries = [entry for entry in chosen.split(":") if Path(entry).name.startswith("liboffpath_")]
    for at, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if not libraries or name != "LD_PRELOAD" or words[at - 1] not in PRELOAD_OPTIONS.get(kind, ()):
            continue
        if equals:
            words[at] = f"{name}={preload(libraries, {name: value})}"
        elif kind == mpis.OPENMPI:  # means what it has in its environment
            words[at] = f"{name}={chosen}"
        elif at + 1 < len(words):
            words[at + 1] = preload(libraries, {name: words[at + 1]})
    return words


def _flags(flag: str, chosen: Mapping[str, str], *, joined: bool) -> list[str]:
    flags: list[str] = []
    for name in sorted(chosen):
        flags += [flag, f"{name}={chosen[name]}"] if joined else [flag, name, chosen[name]]
    return flags


def _insert_per_program(argv: Sequence[str], flags: list[str]) -> list[str]:
    """Open MPI's -x holds for one program of `mpirun A : B` only, so each gets it."""
    result = [argv[0], *flags]
    for word in argv[1:]:
        result += [word, *flags] if word == ":" else [word]
    return result
