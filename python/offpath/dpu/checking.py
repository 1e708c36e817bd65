# SPDX-License-Identifier: BSD-3-Clause
"""What is found out about a DPU from here: by offpathd's own eyes, so that what it sees a job's agent sees."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from offpath.base.errors import UserError
from offpath.base.files import readable
from offpath.base.paths import paths
from offpath.base.version import __version__
from offpath.dpu.dpufile import EVERY_HOST, Dpu
from offpath.dpu.service import KEY_VARIABLE, default_key_path

ANSWER_LIMIT_S = 60
AT_ONCE = 16


@dataclass(frozen=True)
class Finding:
    """One DPU: what it is, or what is missing."""

    dpu: Dpu
    found: dict
    problem: str | None

    def as_json(self) -> dict:
        about = {"host": self.dpu.host, "dpu": self.dpu.name, "state": "missing" if self.problem else "up"}
        return about | self.found | ({"problem": self.problem} if self.problem else {})


def key_variables() -> dict[str, str]:
    """The user's own key where no other is named."""
    if os.environ.get(KEY_VARIABLE) or not readable(default_key_path()):
        return {}
    return {KEY_VARIABLE: str(default_key_path())}


def check(dpus: Sequence[Dpu]) -> list[Finding]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(_check_one, dpus))


def of_this_host(dpus: Sequence[Dpu]) -> list[Dpu]:
    """Those that the list gives to this host. Raises UserError when it names it nowhere."""
    mine = [dpu for dpu in dpus if _is_this_host(dpu.host)] or [dpu for dpu in dpus if dpu.host == EVERY_HOST]
    if not mine:
        raise UserError(
            f"{socket.gethostname()} is not in the list of DPUs (so there is none for it). Add a line for it.", 1
        )
    return mine


def _is_this_host(name: str) -> bool:
    """By its name, or by an address that it has, but for those that every host has; as src/session/dpus.cpp does it."""
    own = socket.gethostname().lower()
    if name.lower() == own:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return ("." in name) != ("." in own) and name.lower().partition(".")[0] == own.partition(".")[0]
    with socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((name, 0))
        except OSError:
            return False
    return not address.is_loopback


def require(dpus: Sequence[Dpu]) -> None:
    """Raises UserError that names the first that is missing."""
    for finding in check(dpus):
        if finding.problem:
            raise UserError(f"{finding.dpu.where}: DPU {finding.dpu.name}: {finding.problem}", 1)


def _check_one(dpu: Dpu) -> Finding:
    words = [str(paths().service), "--check-dpu", dpu.probe]
    try:
        result = subprocess.run(
            words, capture_output=True, text=True, env=os.environ | key_variables(), timeout=ANSWER_LIMIT_S
        )
    except OSError:
        return Finding(dpu, {}, f"{words[0]} is missing (it looks at DPUs). Run: make build")
    except subprocess.TimeoutExpired:
        return Finding(dpu, {}, f"it does not answer within {ANSWER_LIMIT_S} s. See whether it is overloaded.")
    try:
        found = json.loads(result.stdout)
    except ValueError:
        return Finding(dpu, {}, _explained(dpu, result.stderr))
    return Finding(dpu, found, _mismatch(dpu, found))


def _explained(dpu: Dpu, said: str) -> str:
    lines = said.strip().splitlines()
    line = lines[-1].removeprefix("offpathd: ") if lines else "offpathd says nothing"
    if dpu.port is None:
        return f"{line}. Try by hand: {dpu.probe.removeprefix('exec:')}"
    if "cannot connect" in line and "refused" in line:
        return f"{line} (nothing listens there). Start there: offpathd --listen 0.0.0.0:{dpu.port} --key-file KEY"
    return line if ". " in line else f"{line}. See whether it is up and reached from here"


def _mismatch(dpu: Dpu, found: dict) -> str | None:
    if found["version"] != __version__:
        return f"Offpath {found['version']} is installed there, and {__version__} here. Install the same release"
    if dpu.arch and found["machine"] != dpu.arch:
        return f"it is {found['machine']}, and the list says arch={dpu.arch}. Correct the list"
    if dpu.cores and (core := _not_allowed(dpu.cores, found["allowed_cores"])) is not None:
        return (
            f"the list says cores={dpu.cores}, and offpathd there may not use core {core} (it has "
            f"{found['allowed_cores']}{_confined(found)}). Correct the list"
        )
    if found["most_jobs"] and found["jobs"] >= found["most_jobs"]:
        return f"it is full: it serves {found['jobs']} jobs already. Raise offpathd's --max-clients there"
    return None


def _confined(found: dict) -> str:
    return " of a control group, as a job's, that it was started in" if count_cores(found) < found["cores"] else ""


def count_cores(found: dict) -> int:
    """Those that offpathd there may use."""
    return sum(len(part) for part in _ranges(found["allowed_cores"]))


def _not_allowed(cores: str, allowed: str) -> int | None:
    """The first of the cores that is not."""
    others = (core for part in _ranges(cores) for core in part if not any(core in some for some in _ranges(allowed)))
    return next(others, None)


def _ranges(text: str) -> list[range]:
    """Of 0-3,6."""
    ends = [part.partition("-") for part in text.split(",") if part]
    return [range(int(first), int(last or first) + 1) for first, _, last in ends]
