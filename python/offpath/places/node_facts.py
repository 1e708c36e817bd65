# SPDX-License-Identifier: BSD-3-Clause
"""Run by every rank on the nodes of a job, by path: which node it is on, and what that node is like. One line of JSON.

It imports nothing of Offpath: whether that is there is what it finds out. node_facts.py [MEASURE|--try] -- FILE...: the
FILEs are looked for, the service first; rank 0 runs MEASURE, a program that prints JSON, and puts that into its line.
--try: it also tries what Offpath needs there (offpath selftest).
"""

import ctypes
import errno
import hashlib
import json
import os
import platform
import resource
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
START = "offpath-node "
PR_SET_PTRACER, PTRACER_ANY = 0x59616D61, -1
QUOTAS = (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))  # by version of control groups, 2 and 1


def said(path):
    """None where nothing is said."""
    try:
        return Path(path).read_text().strip()
    except (OSError, ValueError):
        return None


def processor():
    lines = (said("/proc/cpuinfo") or "").splitlines()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def quota():
    """The processor time that the control groups around us grant, in cores; None: all of it."""
    found = []
    for line in (said("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        names = QUOTAS[0] if not controllers else QUOTAS[1] if "cpu" in controllers.split(",") else ()
        home = Path("/sys/fs/cgroup", controllers)
        own = home / path.lstrip("/")
        for group in (own, *own.parents) if names else ():
            words = " ".join(said(group / name) or "" for name in names).split()
            if len(words) == 2 and words[0].isdigit():
                found.append(int(words[0]) / int(words[1]))
            if group == home:
                break
    return min(found, default=None)


def is_read():
    """Whether a process of this user reads another one's memory, as a service does a rank's: None, or why it cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    word = ctypes.create_string_buffer(b"offpath", 8)
    ready, release = os.pipe(), os.pipe()
    rank = os.fork()
    if rank == 0:
        libc.prctl(PR_SET_PTRACER, ctypes.c_long(PTRACER_ANY), 0, 0, 0)
        os.close(release[1])
        os.write(ready[1], b"1")
        os.read(release[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    service = os.fork()
    if service == 0:
        here = ctypes.create_string_buffer(8)
        parts = [(ctypes.c_void_p * 2)(ctypes.addressof(at), 8) for at in (here, word)]
        got = libc.process_vm_readv(rank, parts[0], ctypes.c_ulong(1), parts[1], ctypes.c_ulong(1), ctypes.c_ulong(0))
        os._exit(0 if got == 8 and here.raw == word.raw else ctypes.get_errno() or errno.EFAULT)
    status = os.waitpid(service, 0)[1]
    os.close(release[1])
    os.waitpid(rank, 0)
    return os.strerror(os.WEXITSTATUS(status)) if status else None


def stays_in(parent):
    """As in offpath.base.files."""
    try:
        info = os.stat(parent)
    except OSError:
        return False
    return info.st_uid in (os.getuid(), 0) and (not info.st_mode & 0o22 or bool(info.st_mode & stat.S_ISVTX))


def runtime():
    """Of the folder for sockets, as src/session/link.cpp takes it: None, or what is wrong with it."""
    own = os.environ.get("OFFPATH_RUNTIME_DIR")
    xdg = os.environ.get("XDG_RUNTIME_DIR")
    places = [own] if own else [*([f"{xdg}/offpath"] if xdg and stays_in(xdg) else []), f"/tmp/offpath-{os.getuid()}"]
    problem = None
    for place in places:
        name = f"{place}/{os.getpid()}.try"
        try:
            os.makedirs(place, mode=0o700, exist_ok=True) if place == own else Path(place).mkdir(0o700, exist_ok=True)
            info = os.lstat(place)
            if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o77:
                raise PermissionError(errno.EACCES, "not a folder that only its owner can use")
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
                probe.bind(name)
            os.unlink(name)
            return None
        except OSError as error:
            problem = f"{place}: {error.strerror or error}"
    return problem


def shared():
    """Memory without a name, as sessions are: None, or why there is none."""
    try:
        with open(os.memfd_create("offpath", os.MFD_ALLOW_SEALING), "r+b") as file:
            file.truncate(1 << 20)
            file.write(bytes(1 << 20))
        return None
    except (OSError, AttributeError) as error:
        return getattr(error, "strerror", None) or "not in this kernel"


def free_shm():
    try:
        info = os.statvfs("/dev/shm")
        return info.f_bavail * info.f_frsize
    except OSError:
        return None


def limit(which):
    """None: there is none. A service raises its own to the hard one, but not that of locked memory."""
    found = resource.getrlimit(which)[0 if which == resource.RLIMIT_MEMLOCK else 1]
    return None if found == resource.RLIM_INFINITY else found


def rdma():
    ports = Path("/sys/class/infiniband").glob("*/ports/*/state")
    return sorted({port.parts[-4] for port in ports if (said(port) or "").endswith("ACTIVE")})


def version(service):
    try:
        done = subprocess.run([service, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{getattr(error, 'strerror', None) or 'no answer within 30 s'}"
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[-1].replace("offpathd ", "") if lines else f"exit {done.returncode}"


def content(names):
    total = hashlib.sha256()
    for name in names:
        try:
            total.update(Path(name).read_bytes())
        except OSError:
            total.update(b"none")
    return total.hexdigest()[:12]


def tried(files):
    return {
        "quota": quota(), "version": version(files[0]), "content": content(files), "time_s": time.time(),
        "clock": said("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "not_read": is_read(), "ptrace_scope": said("/proc/sys/kernel/yama/ptrace_scope"), "not_shared": shared(),
        "shm_bytes": free_shm(), "runtime": runtime(), "rdma": rdma(),
        "locked_bytes": limit(resource.RLIMIT_MEMLOCK), "open_files": limit(resource.RLIMIT_NOFILE),
    }  # fmt: skip


def main():
    place = sys.argv.index("--")
    files = sys.argv[place + 1 :]
    rank = next((int(os.environ[name]) for name in RANKS if os.environ.get(name, "").isdigit()), None)
    facts = {
        "rank": rank, "node": platform.node(), "arch": platform.machine(), "processor": processor(),
        "cores": os.cpu_count(), "allowed": sorted(os.sched_getaffinity(0)),
        "missing": [name for name in files if not os.access(name, os.R_OK)],
    }  # fmt: skip
    if sys.argv[1:place] == ["--try"]:
        facts.update(tried(files))
    elif rank == 0 and place > 1:
        done = subprocess.run(sys.argv[1:place], capture_output=True)
        facts["measured"] = json.loads(done.stdout) if done.returncode == 0 else None
    sys.stdout.write(START + json.dumps(facts) + "\n")  # in one piece: others write, too


if __name__ == "__main__":
    main()
