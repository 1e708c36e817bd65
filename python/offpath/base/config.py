# SPDX-License-Identifier: BSD-3-Clause
"""Every variable Offpath reads, with its default and meaning: the one list that help, `info`, man pages and documents
are made of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    name: str
    default: str | None
    help: str


SETTINGS = (
    Setting("OFFPATH_ENABLE", "1", "0: everything native"),
    Setting("OFFPATH_LOG", "warn", "messages of the library: off, error, warn, info, debug (on stderr)"),
    Setting("OFFPATH_POLICY", None, "rows COLLECTIVE[:FROM-TO][:nodes=N]:host|dpu[=ALGORITHM] that override the table"),
    Setting("OFFPATH_POLICY_FILE", None,
            "rows put before them; none: no file; default: this cluster's, or ~/.config/offpath/policy (offpath "
            "tune)"),
    Setting("OFFPATH_CLUSTER", None,
            "name of this cluster, whose files offpath tune and calibrate wrote; default: Slurm's"),
    Setting("OFFPATH_MACHINE", None, "machine file of the planner; default: this cluster's (offpath calibrate)"),
    Setting("OFFPATH_MPI_ADAPT", "off",
            "on: what pays is found out while the program runs (offpath run --policy auto); freeze: as earlier runs "
            "found"),
    Setting("OFFPATH_MPI_ADAPT_PERCENT", "1", "of the time since MPI_Init that finding out may cost"),
    Setting("OFFPATH_MPI_MEMORY", None, "rows that adaptation begins with; offpath run fills it in"),
    Setting("OFFPATH_MPI_COMM_POLICY", None, "NAME=host|dpu|auto|freeze, ...: communicators by MPI_Comm_set_name"),
    Setting("OFFPATH_MPI_WINDOWS", None,
            "dpu|host|auto|alternate: how operations on offloaded windows go; default: auto, dpu if you wrote the "
            "row"),
    Setting("OFFPATH_MPI_STAGING", "67108864",
            "bytes a rank gives, as they are needed, to messages that it has not received yet; 0: messages are "
            "native"),
    Setting("OFFPATH_STATS_FILE", None, "one JSON line per rank is appended here at MPI_Finalize"),
    Setting("OFFPATH_RUNTIME_DIR", None, "folder of the sockets; default $XDG_RUNTIME_DIR/offpath or /tmp/offpath-UID"),
    Setting("OFFPATH_DPU", None, "this node's DPUs, other machines: HOST:PORT or exec:COMMAND, with commas"),
    Setting("OFFPATH_DPUS", None, "those of all nodes, NODE=DPU[,DPU];...: offpath run --dpus fills it in"),
    Setting("OFFPATH_SERVICE_PATH", None, "offpathd to start; default: next to the library"),
    Setting("OFFPATH_SERVICE_WRAPPER", None, "words put before it, %h is the host name"),
    Setting("OFFPATH_SERVICE_CORES", None,
            "cores for workers and helpers, like 2,3; default: cores no rank is bound to"),
    Setting("OFFPATH_SERVICE_SHARE", "0", "1: workers may use the application's cores"),
    Setting("OFFPATH_QUIET_WAITS", "0", "1: ranks that wait in the MPI sleep, also where nothing is offloaded"),
    Setting("OFFPATH_SERVICE_WORKERS", "1",
            "threads of the service that serve ranks; its other cores help them compute"),
    Setting("OFFPATH_SERVICE_LOG", None, "file for the service's messages"),
    Setting("OFFPATH_SERVICE_LOG_LEVEL", "info", "what goes into it: info, debug"),
    Setting("OFFPATH_SERVICE_START_TIMEOUT_MS", "10000", "how long a rank waits for its service"),
    Setting("OFFPATH_SERVICE_SILENCE_MS", "30000",
            "a service that is waited for and gives no sign of life for so long is ended; 0: never (debuggers)"),
    Setting("OFFPATH_SHARED_MEMORY_BYTES", None,
            "memory a rank may share with its service; default: as much as the machine has"),
    Setting("OFFPATH_MAPPED", "allocated",
            "what lies in the memory shared with the service: off (nothing), allocated (what MPI allocates), on, or "
            "a number of uses (also buffers that communicate so often; they are moved there)"),
    Setting("OFFPATH_MPI_LOSS_TIMEOUT_MS", "60000", "how long a rank waits for word of ranks whose service is lost"),
    Setting("OFFPATH_MPI_BLOCKING", "none",
            "blocking calls to offload: all, none, or of alltoall(v), allgather(v), bcast, allreduce"),
    Setting("OFFPATH_PROFILE", None, "record to files of this name instead of offloading (offpath profile sets it)"),
    Setting("OFFPATH_TRACE", None, "record operations to files of this name (offpath run --trace, --summary)"),
    Setting("OFFPATH_JOB_NAME", None, "what metrics and traces call a run; default: the scheduler's name of the job"),
    Setting("OFFPATH_TRACE_SAMPLE", "1", "record one of so many operations of each call site and communicator"),
    Setting("OFFPATH_FABRIC", None,
            "how services reach each other, alike on all nodes: tcp, rdma, ucx; default: rdma where a port of it is "
            "active"),
    Setting("OFFPATH_FABRIC_SECURITY", "auth",
            "of the fabric tcp, alike on all nodes: auth (nothing can be changed on its way), encrypt (nor read), "
            "user-data-unprotected (data can be changed)"),
    Setting("OFFPATH_COMPRESS", "off",
            "what goes to other nodes compressed: off, auto (what pays), sample (nothing, but what it would save), "
            "lz4, zstd, deflate, zlib; with :level=N,shuffle=2|4|8 (bytes sorted by their place in numbers); numbers "
            "with a loss: zfp, sz3, with :abs=X or :rel=X, and ,reductions"),
    Setting("OFFPATH_FABRIC_CHUNK_BYTES", None, "bytes per message between services; default: measured"),
    Setting("OFFPATH_MULTICAST_RATE", None,
            "bits per second that links take, for the algorithm multicast; default: what the network device says"),
    Setting("OFFPATH_MULTICAST_CHAINS", "0",
            "nodes that multicast at the same time; 0: all, where those with something to send are 16 at most, else "
            "two; the first node of a team decides"),
    Setting("OFFPATH_UCX_TLS", None, "UCX_TLS for the service only"),
    Setting("OFFPATH_UCX_NET_DEVICES", None, "network devices for the service, also of the fabric tcp, like eth0,ib0"),
    Setting("OFFPATH_DEVICES", "local",
            "devices for target regions, by number: [NAME=]local or [NAME=]HOST:PORT[/ARCH], or none"),
    Setting("OFFPATH_DEVICES_FILE", None, "file with the same, one a line, where OFFPATH_DEVICES is not set"),
    Setting("OFFPATH_DEVICE_KEY_FILE", None, "the key of remote devices and DPUs; none: MUNGE says who asks a DPU"),
    Setting("OFFPATH_DEVICE_MEMORY_BYTES", None,
            "memory that a program can map on a device; default: half of the machine's"),
    Setting("OFFPATH_MUNGE_SOCKET", None, "socket of the munged that says who asks a DPU; default: the machine's"),
    Setting("OFFPATH_DEVICE_TIMEOUT_MS", "10000", "how long to wait for a device's first word"),
    Setting("OFFPATH_TASK_EXECUTORS", None, "executors of tasks of each worker; default: one per core no worker needs"),
    Setting("OFFPATH_TASK_ROOM_BYTES", "1073741824", "room for copies of tasks' memory that is not shared"),
    Setting("OFFPATH_TASK_MEMORY_BYTES", None, "most that functions of tasks may allocate in an executor"),
    Setting("OFFPATH_TASK_FOLDERS", None, "where executors look for tasks' shared objects first, separated by colons"),
    Setting("OFFPATH_TASK_CANCEL_MS", "1000", "how long a cancelled task may go on before its executor is ended"),
    Setting("OFFPATH_TASK_BALANCE", "on", "tasks move to other nodes that have time: on, off, always (all, for tests)"),
    Setting("OFFPATH_PREFIX", None, "build tree or installed prefix the command line uses"),
    Setting("OFFPATH_CLANG", "clang-14", "what offpath-cc calls; offpath-c++ calls clang++-14"),
    Setting("OFFPATH_CC_VERBOSE", None, "1: offpath-cc says what it leaves out of device code"),
    Setting("OFFPATH_TASK_PYTHON", None, "interpreter for Python's tasks; default: the program's own"),
    Setting("OFFPATH_TORCH_ON", "service", "host: a PyTorch program makes its batches and validations itself"),
    Setting("OFFPATH_TORCH_PROFILE", None, "file for what batches and validations of a PyTorch training take"),
    Setting("OFFPATH_JOB_SECRET", None,
            "what all ranks of a job, and nobody else, are to know (offpath.init() on several nodes needs it): 16 or "
            "more characters"),
    Setting("OFFPATH_INIT_ADDRESS", None, "host:port of rank 0, where the ranks of offpath.init() meet"),
    Setting("OFFPATH_INIT_FOLDER", None, "a new folder that all nodes see, where they meet instead"),
    Setting("OFFPATH_INIT_TIMEOUT_S", "300", "seconds in which all ranks must have come"),
)  # fmt: skip

# What parts of Offpath tell each other. Nobody has to set them.
INTERNAL = (
    Setting("OFFPATH_LAB", None, "which lab a process runs in; the lab sets it"),
    Setting("OFFPATH_LAB_RUN", None,
            "which run of a lab, or crowd of a benchmark, a process belongs to, so that it can be ended"),
    Setting("OFFPATH_LAB_SHARED", None, "folder that a node shares besides, that of the program; the lab sets it"),
    Setting("OFFPATH_LAB_YIELD", None,
            "1: ranks that share a core let each other run while they wait; the lab sets it"),
    Setting("OFFPATH_BENCH_SERVICES_AT", None,
            "network namespace of services whose time a benchmark counts; offpath bench sets it"),
)  # fmt: skip

# Any other OFFPATH_UCX_* is handed on to the service's UCX; it is known by its prefix, not by its name.
PASSED_ON_PREFIX = "OFFPATH_UCX_"


def resolved(environ: Mapping[str, str] = os.environ) -> list[dict]:
    """Every setting with default, current value and where the value came from, in a stable order."""
    rows = [_row(setting, environ) for setting in SETTINGS]
    listed = {setting.name for setting in SETTINGS}
    for name in sorted(environ):
        if name.startswith(PASSED_ON_PREFIX) and name not in listed:
            rows.append(_row(Setting(name, None, "handed on to the service's UCX"), environ))
    return rows


def unknown(environ: Mapping[str, str] = os.environ) -> list[str]:
    """OFFPATH_* variables that nothing reads: most likely a spelling mistake."""
    listed = {setting.name for setting in (*SETTINGS, *INTERNAL)}
    others = (PASSED_ON_PREFIX, "OFFPATH_LAB", "OFFPATH_TEST_")
    return sorted(
        name for name in environ if name.startswith("OFFPATH_") and name not in listed and not name.startswith(others)
    )


def _row(setting: Setting, environ: Mapping[str, str]) -> dict:
    given = environ.get(setting.name)
    if given and setting.name.endswith("_SECRET"):
        given = "(a secret)"
    return {
        "name": setting.name,
        "value": setting.default if given is None else given,
        "default": setting.default,
        "source": "default" if given is None else "environment",
        "help": setting.help,
    }
