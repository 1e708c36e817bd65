# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm of one node for tests: all of it in one folder, with ports of its own, gone when the tests are."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from conftest import LIMIT_S

DAEMONS = ("munged", "slurmctld", "slurmd")
SEARCHED = os.environ["PATH"] + ":/usr/sbin:/sbin"
CONFIGURATION = """
ClusterName=offpath
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={home}/munge.socket
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4
PartitionName=all Nodes=ALL Default=YES
"""


class Slurm:
    """`environment` makes Slurm's commands and everything they start talk to this one."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {"SLURM_CONF": str(home / "slurm.conf")}

    def run(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess:
        """Runs `argv`, which starts jobs, to its end."""
        variables = os.environ | self.environment | (env or {})
        return subprocess.run(argv, capture_output=True, text=True, env=variables, timeout=LIMIT_S, check=False)

    def is_idle(self) -> bool:
        return self.run(["sinfo", "--noheader", "--format", "%T"]).stdout.strip() == "idle"

    def log(self) -> str:
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in sorted(self.home.glob("*.log")))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _prepare(home: Path) -> None:
    home.chmod(0o755)  # ranks find their socket in it
    host = socket.gethostname().split(".")[0]
    ports = {"controller_port": _free_port(), "node_port": _free_port()}
    (home / "slurm.conf").write_text(CONFIGURATION.format(home=home, host=host, **ports))
    key = home / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    for name in ("state", "spool"):
        (home / name).mkdir()


def _wait_until(condition: Callable[[], bool], what: str, slurm: Slurm, daemons: Sequence[subprocess.Popen]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        ended = [daemon.args for daemon in daemons if daemon.poll() is not None]
        if ended or time.monotonic() > deadline:
            pytest.fail(f"{what} (ended: {ended})\n{slurm.log()}", pytrace=False)
        time.sleep(0.05)


def _end(slurm: Slurm, daemons: Sequence[subprocess.Popen]) -> None:
    for daemon in reversed(daemons):
        daemon.terminate()
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
    mark = f"SLURM_CONF={slurm.environment['SLURM_CONF']}".encode()
    for entry in Path("/proc").iterdir():  # jobs of tests that failed, and what starts and watches them
        with contextlib.suppress(OSError, ValueError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)


@contextlib.contextmanager
def running() -> Iterator[Slurm]:
    if os.geteuid() != 0:
        pytest.skip("Slurm's daemons need root")
    missing = [name for name in (*DAEMONS, "srun", "sbatch", "sinfo") if not shutil.which(name, path=SEARCHED)]
    if missing:
        pytest.skip(f"Slurm is not installed (no {', '.join(missing)}; make setup installs it)")
    # The munge socket's name must be short.
    with tempfile.TemporaryDirectory(prefix="offpath-slurm-", dir="/tmp") as folder:
        slurm = Slurm(Path(folder))
        _prepare(slurm.home)
        daemons: list[subprocess.Popen] = []

        def start(name: str, *arguments: str) -> None:
            with (slurm.home / f"{name}-output.log").open("w") as output:
                command = ["setpriv", "--pdeathsig", "TERM", shutil.which(name, path=SEARCHED), *arguments]
                environment = os.environ | slurm.environment
                daemons.append(subprocess.Popen(command, env=environment, stdout=output, stderr=output))

        try:
            files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid"}
            files |= {"seed-file": "munge.seed", "log-file": "munged.log"}
            start("munged", "--foreground", *(f"--{option}={slurm.home / name}" for option, name in files.items()))
            socket_made = (slurm.home / "munge.socket").exists
            _wait_until(socket_made, "munged does not listen", slurm, daemons)
            start("slurmctld", "-D", "-i", "-c")
            start("slurmd", "-D", "-c")
            _wait_until(slurm.is_idle, "the node of Slurm does not come up", slurm, daemons)
            yield slurm
        finally:
            _end(slurm, daemons)
