# SPDX-License-Identifier: BSD-3-Clause
"""Standing device services: offpathd on a TCP port, of this machine's architecture or, under qemu, of another."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import shlex
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from offpath.base import proc, processes
from offpath.base.errors import UserError
from offpath.base.files import json_if_any, new_file, new_secret, private_folder
from offpath.base.oldest import StrEnum
from offpath.base.paths import Paths, config_folder, paths, runtime_folder

START_LIMIT_S = 20.0
STOP_GRACE_S = 5.0
KEY_VARIABLE = "OFFPATH_DEVICE_KEY_FILE"


class Architecture(StrEnum):
    x86_64 = "x86_64"
    aarch64 = "aarch64"


@dataclass(frozen=True)
class Options:
    """What a service is started with; None: offpathd's own default."""

    name: str
    arch: str
    listen: str
    key_file: Path
    cores: str | None = None
    memory_bytes: int | None = None
    max_clients: int | None = None


@dataclass(frozen=True)
class Record:
    """A running service. A process is known by number and start time, because numbers are used again."""

    name: str
    arch: str
    address: str
    key_file: str
    log: str
    pid: int
    started: str
    emulated: bool

    @property
    def entry(self) -> str:
        """As OFFPATH_DEVICES lists it."""
        return f"{self.name}={self.address}/{self.arch}"


def command(options: Options, where: Paths | None = None) -> list[str]:
    """The command line of the service. Raises UserError where the architecture cannot be had."""
    where = where or paths()
    service, executor, emulator = where.service, None, []
    if options.arch != platform.machine():
        emulator = emulator_command(options.arch, where)
        programs = where.other_architecture(options.arch)
        service = programs / "offpathd"
        executor = shlex.join([*emulator, str(programs / "offpath-executor")])
    words = [*emulator, str(service), "--listen", options.listen, "--key-file", str(options.key_file)]
    given = {
        "--executor": executor,
        "--cores": options.cores,
        "--memory": options.memory_bytes,
        "--max-clients": options.max_clients,
    }
    return words + [word for name, value in given.items() if value is not None for word in (name, str(value))]


def emulator_command(arch: str, where: Paths) -> list[str]:
    emulator = shutil.which(f"qemu-{arch}")
    if emulator is None:
        raise UserError(f"qemu-{arch} is missing (it emulates the processor). Install Debian's qemu-user.")
    sysroot = where.sysroot(arch)
    if sysroot is None or not (where.other_architecture(arch) / "offpathd").exists():
        raise UserError(f"The service is not built for {arch} (it would be emulated). Run: make {arch}")
    return [emulator, "-L", str(sysroot)]


def default_key_path() -> Path:
    return config_folder() / "device.key"


def default_key_file() -> Path:
    """The user's own key, made when it is first asked for."""
    path = default_key_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        new_secret(path)
    return path


def with_free_port(listen: str) -> str:
    """HOST:PORT, with a free port in the place of 0 or none."""
    host, _, port = listen.rpartition(":") if ":" in listen else (listen, "", "0")
    if not port.isdigit() or int(port) > 65535:
        raise UserError(f"{listen} is not an address to listen on (no port). Write HOST:PORT, like 127.0.0.1:7001.")
    try:
        with socket.create_server((host, int(port))) as probe:
            return f"{host}:{probe.getsockname()[1]}"
    except OSError as error:
        raise UserError(f"Nothing can listen on {listen}: {error.strerror}. Choose another --listen.", 1) from None


def start(options: Options) -> Record:
    """Starts a service that outlives us, and returns when it listens."""
    folder = _folder()
    if load(options.name):
        raise UserError(f"A device named {options.name} runs already. Choose another name, or: offpath device stop")
    log = folder / f"{options.name}.log"
    with new_file(log) as output:
        process = processes.in_background(command(options), output)
    record = Record(
        options.name, options.arch, options.listen, str(options.key_file), str(log), process.pid,
        proc.began(process.pid), options.arch != platform.machine(),
    )  # fmt: skip
    try:
        await_listening(process, options.listen, log)
    except BaseException:
        process.kill()
        process.wait()
        raise
    temporary = folder / f"{options.name}.new"
    with new_file(temporary) as file:
        file.write(json.dumps(asdict(record)).encode() + b"\n")
    temporary.rename(folder / f"{options.name}.json")
    return record


def running() -> list[Record]:
    """All that run; the records of those that were killed are removed."""
    return [record for path in sorted(_folder().glob("*.json")) if (record := load(path.stem))]


def load(name: str) -> Record | None:
    path = _folder() / f"{name}.json"
    try:
        record = Record(**(json_if_any(path) or {}))
    except TypeError:
        return None
    if not _is_running(record):
        path.unlink(missing_ok=True)
        return None
    return record


def stop(record: Record) -> None:
    """Ends the service and, with it, the executors of all programs that use it."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(record.pid)  # from here on the number cannot come to mean another process
        try:
            if _is_running(record):
                signal.pidfd_send_signal(process, signal.SIGTERM)
                if not select.select([process], [], [], STOP_GRACE_S)[0]:
                    signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)
    (_folder() / f"{record.name}.json").unlink(missing_ok=True)


def _is_running(record: Record) -> bool:
    """Its process is the one that was started, and a service."""
    if not isinstance(record.pid, int) or record.pid <= 1 or proc.began(record.pid) != record.started:
        return False
    try:
        program = os.path.basename(os.readlink(f"/proc/{record.pid}/exe").removesuffix(" (deleted)"))
    except OSError:
        return False
    return program == "offpathd" or (record.emulated and program.startswith("qemu-"))


def await_listening(process: subprocess.Popen, address: str, log: Path) -> None:
    """Returns when the process, in whichever network it is, listens there. Raises UserError when it does not."""
    port = int(address.rpartition(":")[2])
    until_s = time.monotonic() + START_LIMIT_S
    if said := processes.not_started(process, log, lambda: _listens(process.pid, port), until_s):
        raise UserError(f"The device service did not start: {said} (all of it: {log}).", 1)


def _listens(pid: int, port: int) -> bool:
    """Looks at the sockets of its network: connecting would be taken for a client."""
    with contextlib.suppress(OSError):
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state = line.split()[:4]
                if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                    return True
    return False


def _folder() -> Path:
    return private_folder(runtime_folder() / "devices")
