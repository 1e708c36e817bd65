# SPDX-License-Identifier: BSD-3-Clause
"""The list of DPUs: one for everything that is offloaded. Pure, but for names that are looked up.

# host   DPU         how it is reached, and what the service may use there
node1    10.0.0.2    port=7001 workers=2 cores=0-3
node2    node2-dpu   ssh
*        spare1                            # for every other host
"""

from __future__ import annotations

import functools
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath.base.errors import UserError

DEFAULT_PORT = 7001
EVERY_HOST = "*"
MAX_WORKERS = 64
SSH = "ssh -o BatchMode=yes"

_HOST = re.compile(r"^[A-Za-z0-9_.:-]+$")
_WORKERS = f"a number of workers or executors. Give 1 to {MAX_WORKERS}"
# What a line may say of a DPU: the largest number or the form of a text, and what others are not.
_OPTIONS: dict[str, tuple[int | str, str]] = {
    "port": (65535, f"a port. Give 1 to 65535, like port={DEFAULT_PORT}"),
    "workers": (MAX_WORKERS, _WORKERS),
    "executors": (MAX_WORKERS, _WORKERS),
    "cores": (r"\d+(-\d+)?(,\d+(-\d+)?)*", "a list of cores. Write it like cores=0-3 or cores=2,4"),
    "functions": (
        r"/[A-Za-z0-9_./-]+",
        "a folder on the DPU (tasks' functions are looked for there). Write it like functions=/opt/app/lib: letters, "
        "digits and _ . - in its names",
    ),
    "arch": ("x86_64|aarch64", "an architecture. Use x86_64 or aarch64"),
}
_FLAGS = ("ssh", "share")


@dataclass(frozen=True)
class Dpu:
    """One line: the DPU of one host."""

    host: str
    address: str  # name or address of the DPU
    port: int | None = DEFAULT_PORT  # None: by ssh
    workers: int | None = None
    executors: int | None = None  # of tasks
    functions: str | None = None  # folder of tasks' shared objects there
    cores: str | None = None
    arch: str | None = None
    share: bool = False  # an application runs on these cores, too
    where: str = "--dpus"  # file:line

    @property
    def name(self) -> str:
        return f"{self.address} (ssh)" if self.port is None else self._with_port()

    def _with_port(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    @property
    def entry(self) -> str:
        """As OFFPATH_DPU names it (src/device/starter.hpp)."""
        if self.port is None:
            told = {
                "OFFPATH_SERVICE_WORKERS": self.workers, "OFFPATH_TASK_EXECUTORS": self.executors,
                "OFFPATH_TASK_FOLDERS": self.functions,
            }  # fmt: skip
            words = [f"{name}={value} " for name, value in told.items() if value]
            variables = "env " + "".join(words) if words else ""
            cores = f" --cores {_quoted(self.cores)}" if self.cores else ""
            return (
                f"exec:{SSH} {self.address} {variables}offpathd --for-agents{cores}{' --share' if self.share else ''}"
            )
        escaped = {name: str(value).replace(",", "+").replace("/", "%2F") for name, value in self.wishes.items()}
        words = [f"/{name}={value}" for name, value in escaped.items()] + ["/share"] * self.share
        return self._with_port() + "".join(words)

    @property
    def wishes(self) -> dict[str, int | str]:
        """What the service may use there, and is to be."""
        found = {name: getattr(self, name) for name in ("workers", "executors", "cores", "functions", "arch")}
        return {name: value for name, value in found.items() if value}

    @property
    def probe(self) -> str:
        """What `offpathd --check-dpu` is given."""
        return f"exec:{SSH} {self.address} offpathd --probe" if self.port is None else self._with_port()


def read(given: str) -> list[Dpu]:
    """Of a file, or of a list with commas: [HOST=]DPU[:PORT]. Raises UserError that names the line."""
    path = Path(given)
    if path.is_file():
        return parse_file(path.read_text(errors="replace"), given)
    if "/" in given or not re.search(r"[:=,]", given):
        raise UserError(f"{given} is not a file (it would list the DPUs). Correct --dpus, or give HOST=DPU:PORT,...")
    return _checked([_of_word(word.strip()) for word in given.split(",") if word.strip()])


def parse_file(text: str, name: str) -> list[Dpu]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#")[0].split()
        if words:
            found.append(_of_line(words, f"{name}:{number}"))
    if not found:
        raise UserError(f"{name} lists no DPU (a job needs one). Write lines like: node1 10.0.0.2 port={DEFAULT_PORT}")
    return _checked(found)


def variable(dpus: Sequence[Dpu]) -> str:
    """OFFPATH_DPUS, the same for all ranks: each node finds its own in it (src/session/dpus.hpp)."""
    hosts = dict.fromkeys(dpu.host for dpu in dpus)
    return ";".join(f"{host}=" + ",".join(dpu.entry for dpu in dpus if dpu.host == host) for host in hosts)


def check_names(dpus: Sequence[Dpu]) -> None:
    """Raises UserError for a host or DPU that nobody knows here. What ssh is to find, ssh knows."""
    for dpu in dpus:
        names = [] if dpu.host == EVERY_HOST else [("host", dpu.host)]
        names += [] if dpu.port is None else [("DPU", dpu.address)]
        for kind, name in names:
            if not known(name):
                raise UserError(f"{dpu.where}: the {kind} {name} is not known (no address for it). Correct the name.")


@functools.cache
def known(name: str) -> bool:
    try:
        return bool(socket.getaddrinfo(name, None))
    except OSError:
        return False


def _of_word(word: str) -> Dpu:
    host, equals, dpu = word.partition("=")
    host, dpu = (host, dpu) if equals else (EVERY_HOST, host)
    address, port = _with_port(dpu, "--dpus")
    return Dpu(_host(host, "--dpus"), address, port)


def _of_line(words: Sequence[str], where: str) -> Dpu:
    if len(words) < 2:
        raise UserError(
            f"{where}: '{words[0]}' has no DPU. Write: HOST DPU [port=N|ssh] [workers=N] [executors=N] [cores=LIST] "
            "[functions=FOLDER] [share]"
        )
    address, port = _with_port(words[1], where)
    given: dict = {}
    for word in words[2:]:
        name, equals, value = word.partition("=")
        if name not in (_OPTIONS if equals else _FLAGS):
            raise UserError(
                f"{where}: '{word}' is not understood. Use port=N, ssh, workers=N, executors=N, "
                "cores=LIST, functions=FOLDER, share, arch=ARCH."
            )
        if name in given:
            raise UserError(f"{where}: {name} is given twice. Keep one.")
        given[name] = _value(name, value, where) if equals else True
    if "ssh" in given and "port" in given:
        raise UserError(f"{where}: port= and ssh are both given (one way leads to a DPU). Keep one.")
    port = None if "ssh" in given else given.get("port", port)
    host = _host(words[0], where)
    options = {name: value for name, value in given.items() if name not in ("port", "ssh")}
    return Dpu(host, address, port, where=where, **options)


def _quoted(word: str) -> str:
    """Its commas separate no entries (src/session/dpus.hpp)."""
    return f"'{word}'" if "," in word else word


def _checked(dpus: list[Dpu]) -> list[Dpu]:
    seen: dict = {}
    for dpu in dpus:
        before = seen.setdefault((dpu.host.lower(), dpu.address.lower(), dpu.port), dpu)
        if before is not dpu:
            first = f"in {before.where}, too" if before.where != dpu.where else "twice"
            raise UserError(f"{dpu.where}: {dpu.host} has {dpu.name} {first}. Remove one.")
    return dpus


def _host(name: str, where: str) -> str:
    if name != EVERY_HOST and not _HOST.match(name):
        raise UserError(f"{where}: '{name}' is not a host name. Write a name, an address, or * for every other host.")
    return name


def _with_port(text: str, where: str) -> tuple[str, int]:
    """DPU, DPU:PORT or [DPU]:PORT."""
    try:
        return str(ipaddress.IPv6Address(text)), DEFAULT_PORT
    except ValueError:
        pass
    address, colon, port = text.rpartition(":")
    if not colon:
        address, port = text, str(DEFAULT_PORT)
    address = address.removeprefix("[").removesuffix("]")
    if not _HOST.match(address):
        raise UserError(f"{where}: '{text}' is not a DPU. Write its name or address.")
    return address, _value("port", port, where)


def _value(name: str, text: str, where: str) -> int | str:
    form, what = _OPTIONS[name]
    if isinstance(form, int):
        if text.isdecimal() and 1 <= int(text) <= form:
            return int(text)
    elif re.fullmatch(form, text):
        return text
    raise UserError(f"{where}: '{text}' is not {what}.")
