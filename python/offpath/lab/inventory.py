# SPDX-License-Identifier: BSD-3-Clause
"""What exists of a lab on this machine, and how all of it is removed.

Removal asks the machine and not the lab's own record, so that it also works after a kill at any moment.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from offpath.base import proc
from offpath.lab import plan as planning

NETNS_DIR = Path("/run/netns")
QUOTA_ROOT = Path("/sys/fs/cgroup/cpu")
SLURM_GROUP_ROOT = Path("/sys/fs/cgroup")
SLURM_GROUP_KINDS = ("freezer", "cpuset")
GRACE_S = 2.0
POLL_S = 0.02


def namespaces(name: str) -> list[str]:
    if not NETNS_DIR.is_dir():
        return []
    return sorted(entry.name for entry in NETNS_DIR.iterdir() if planning.place_of_namespace(name, entry.name))


def exists(name: str) -> bool:
    return (planning.STATE_ROOT / name).exists() or bool(namespaces(name)) or bool(_quota_groups(name))


def lab_names() -> list[str]:
    """Every lab of which anything exists."""
    found = set()
    if planning.STATE_ROOT.is_dir():
        found |= {entry.name for entry in planning.STATE_ROOT.iterdir()}
    if NETNS_DIR.is_dir():
        found |= {planning.lab_of_namespace(entry.name) for entry in NETNS_DIR.iterdir()}
    return sorted(name for name in found if name)


def processes(name: str, places: Iterable[str] | None = None) -> list[int]:
    """Processes inside the lab's namespaces (or only those of `places`)."""
    wanted = namespaces(name) if places is None else [planning.namespace(name, place) for place in places]
    ids = set()
    for entry in wanted:
        with contextlib.suppress(OSError):
            ids.add(_file_id(NETNS_DIR / entry))
    return _processes_where(lambda pid: _file_id(f"/proc/{pid}/ns/net") in ids)


def processes_of_run(run_id: str) -> list[int]:
    """Processes of one `lab run`, wherever they are now: they all inherited its mark."""
    return processes_marked(f"OFFPATH_LAB_RUN={run_id}")


def processes_marked(variable: str) -> list[int]:
    """Processes that have NAME=VALUE in their environment."""
    mark = variable.encode()
    return _processes_where(lambda pid: mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))


def end_processes(find: Callable[[], list[int]], patience_s: float = 0.0) -> int:
    """Waits up to `patience_s` for the processes that `find` lists to end by themselves, then ends them.

    Asks again until none is left, because a process may have started another. Returns how many it had to end.
    """
    if _gone(find, patience_s):
        return 0
    ended = set()
    for signum, wait_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S), (signal.SIGKILL, GRACE_S)):
        for pid in find():
            ended.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)
        if _gone(find, wait_s):
            break
    return len(ended)


def remove(name: str) -> bool:
    """Removes everything of lab `name`. False when there was nothing."""
    if not exists(name):
        return False
    end_processes(lambda: processes(name))
    for entry in namespaces(name):
        subprocess.run(["ip", "netns", "delete", entry], capture_output=True)
    for group in _quota_groups(name):
        with contextlib.suppress(OSError):
            group.rmdir()
    shutil.rmtree(planning.STATE_ROOT / name, ignore_errors=True)
    remove_slurm_groups()
    with contextlib.suppress(OSError):
        planning.STATE_ROOT.rmdir()
    return True


def _file_id(path: str | Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def has_slurm_groups() -> bool:
    """Whether Slurm can have control groups here: those of version 1."""
    return all((SLURM_GROUP_ROOT / kind / "release_agent").exists() for kind in SLURM_GROUP_KINDS)


def remove_slurm_groups() -> None:
    """Those of nodes of labs, once no lab has a Slurm: their names do not say which lab's they are."""
    if not has_slurm_groups() or any(planning.STATE_ROOT.glob("*/slurm")):
        return
    for kind in SLURM_GROUP_KINDS:
        for top in (SLURM_GROUP_ROOT / kind).glob("slurm_node*"):
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


def _quota_groups(name: str) -> list[Path]:
    if not QUOTA_ROOT.is_dir():
        return []
    return [group for group in QUOTA_ROOT.iterdir() if planning.place_of_namespace(name, group.name)]


def _processes_where(matches: Callable[[int], bool]) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):  # it ended while we looked, or is not ours
                if matches(int(entry)) and not proc.is_dead(int(entry)):
                    found.append(int(entry))
    return found


def _gone(find: Callable[[], list[int]], wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while find():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True
