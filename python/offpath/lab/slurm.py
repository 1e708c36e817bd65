# SPDX-License-Identifier: BSD-3-Clause
"""Slurm on a lab: a controller and munge on the head, a slurmd on each node, all with files of their own in the lab's
folder. It ends with the lab, or before.

Each node has all cores of this machine: Slurm binds tasks to real ones, which the nodes share. Jobs are kept together
and on their cores by control groups where the machine has those of version 1; else by what Slurm does without.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from offpath.base import processes
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.lab import inventory, launchers
from offpath.lab.cluster import Lab
from offpath.lab.plan import HEAD, HEAD_ADDRESS, Plan, host_address
from offpath.launch import mpis

DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("srun", "sbatch", "sinfo")
SEARCHED = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
START_PATIENCE_S = 60.0
POLL_S = 0.05

CONFIGURATION = """\
ClusterName={name}
SlurmctldHost={head}({head_address})
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={home}/munge.socket
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/%n/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/%n.log
TaskProlog={home}/task-prolog
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
AllowSpecResourcesUsage=yes
KillWait=2
"""
WITHOUT_GROUPS = """\
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
"""
# The groups of a job have its number and its node's name in their path. So that two labs do not meet in one, jobs begin
# with a number of this lab's own.
WITH_GROUPS = """\
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup,task/affinity
FirstJobId={first_job}
"""
GROUPS = "CgroupPlugin=cgroup/v1\nConstrainCores=yes\n"


def home(plan: Plan) -> Path:
    return plan.state_dir / "slurm"


def is_up(plan: Plan) -> bool:
    return (home(plan) / "slurm.conf").exists()


def up(lab: Lab, settings: Sequence[str] = (), files: Mapping[str, str] = MappingProxyType({})) -> None:
    """Starts it, and returns when jobs can be submitted.

    `settings`: lines for slurm.conf, which win; `files`: others beside it, by name.

    Raises UserError, and then leaves nothing behind.
    """
    _check_installed()
    if lab.plan.rdma:
        raise UserError(
            f"Slurm does not run on lab {lab.name} (its nodes are virtual machines). Bring up one without --rdma."
        )
    folder = home(lab.plan)
    try:
        folder.mkdir(mode=0o755)
    except FileExistsError:
        begun = "is up" if is_up(lab.plan) else "was begun to be started"
        raise UserError(
            f"Slurm {begun} on lab {lab.name} already. Run `offpath lab slurm down {lab.name}` first."
        ) from None
    try:
        _prepare(lab.plan, settings, files)
        munge = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid"}
        munge |= {"seed-file": "munge.seed", "log-file": "munged.log"}
        started = [_start(lab, HEAD, "munged", "--foreground", *(f"--{key}={folder / munge[key]}" for key in munge))]
        _await((folder / "munge.socket").exists, started, folder)
        started.append(_start(lab, HEAD, "slurmctld", "-D", "-i", "-c"))
        started += [_start(lab, node, "slurmd", "-D", "-c", "-N", node) for node in lab.plan.nodes]
        _await(lambda: _idle_nodes(lab) == lab.plan.node_count, started, folder)
    except BaseException:
        down(lab.plan)
        raise


def down(plan: Plan) -> None:
    """Ends its daemons and every job, and removes its files."""
    mark = f"SLURM_CONF={home(plan) / 'slurm.conf'}"
    inventory.end_processes(lambda: inventory.processes_marked(mark))
    shutil.rmtree(home(plan), ignore_errors=True)
    inventory.remove_slurm_groups()


def command(lab: Lab, argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` where a user of the cluster is logged in."""
    if not is_up(lab.plan):
        raise UserError(f"There is no Slurm on lab {lab.name}. Run: offpath lab slurm up {lab.name}")
    return lab.inside(HEAD, argv)


def variables(plan: Plan) -> dict[str, str]:
    return {"SLURM_CONF": str(home(plan) / "slurm.conf")}


def _task_variables(plan: Plan) -> dict[str, str]:
    """What a site sets for its MPIs: here the lab's links, and what as many cores as nodes share them need."""
    chosen = {}
    for mpi in (mpis.MPICH, mpis.OPENMPI):
        chosen |= launchers.native_variables(mpi, plan, True)
    chosen |= {f"OMPI_MCA_{name}": value for name, value in launchers.openmpi_settings(several=True).items()}
    return chosen | launchers.service_variables(plan)


def _preload() -> str:
    """Lines that put the library in front with which MPICH yields while it waits, and does not hang in MPI_Finalize."""
    library = paths().yield_library
    if not library.exists():
        return ""
    return f'echo export OFFPATH_LAB_YIELD=1\necho "export LD_PRELOAD=${{LD_PRELOAD:+$LD_PRELOAD:}}{library}"\n'


def _prepare(plan: Plan, settings: Sequence[str], files: Mapping[str, str]) -> None:
    folder = home(plan)
    for name in ("state", *plan.nodes):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    prolog = folder / "task-prolog"
    exports = "".join(f"echo 'export {name}={value}'\n" for name, value in sorted(_task_variables(plan).items()))
    prolog.write_text(f"#!/bin/sh\n{exports}{_preload()}")
    prolog.chmod(0o755)
    cores = os.cpu_count() or 1
    text = CONFIGURATION + (WITH_GROUPS if inventory.has_slurm_groups() else WITHOUT_GROUPS)
    first_job = 1 + 50 * secrets.randbelow(10**6)  # Slurm's largest number is 67 million
    lines = text.format(name=plan.name, head=HEAD, head_address=HEAD_ADDRESS, home=folder, first_job=first_job)
    replaced = {line.partition("=")[0].lower() for line in settings}
    kept = [line for line in lines.splitlines() if line.partition("=")[0].lower() not in replaced]
    for number, node in enumerate(plan.nodes, start=1):
        kept.append(f"NodeName={node} NodeAddr={host_address(number)} CPUs={cores} CoresPerSocket={cores}")
    kept.append("PartitionName=all Nodes=ALL Default=YES OverSubscribe=NO")
    for name, content in ({"cgroup.conf": GROUPS} | dict(files)).items():
        (folder / name).write_text(content)
    (folder / "slurm.conf").write_text("\n".join([*kept, *settings]) + "\n")


def _start(lab: Lab, place: str, name: str, *arguments: str) -> subprocess.Popen:
    with open(home(lab.plan) / f"{name}-{place}-output.log", "wb") as output:
        words = lab.inside(place, [shutil.which(name, path=SEARCHED), *arguments])
        return processes.in_background(words, output, os.environ | variables(lab.plan))


def _idle_nodes(lab: Lab) -> int:
    asked = ["sinfo", "--noheader", "--Node", "--states", "idle", "--format", "%N"]
    environment = os.environ | variables(lab.plan)
    answer = subprocess.run(command(lab, asked), env=environment, capture_output=True, text=True).stdout
    return len(set(answer.split()))


def _await(condition: Callable[[], bool], started: Sequence[subprocess.Popen], folder: Path) -> None:
    deadline = time.monotonic() + START_PATIENCE_S
    while not condition():
        ended = [process for process in started if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            raise UserError(f"Slurm does not come up on the lab ({_last_words(folder)}). Run: offpath lab down")
        time.sleep(POLL_S)


def _last_words(folder: Path) -> str:
    lines = [line for file in sorted(folder.glob("*.log")) for line in file.read_text(errors="replace").splitlines()]
    return next((line.strip() for line in reversed(lines) if "error" in line.lower() or "fatal" in line), "no message")


def _check_installed() -> None:
    missing = [name for name in (*DAEMONS, *COMMANDS) if not shutil.which(name, path=SEARCHED)]
    if missing:
        raise UserError(
            f"Slurm is not installed (no {', '.join(missing)}). On Debian: apt-get install slurmctld slurmd munge"
        )
