# SPDX-License-Identifier: BSD-3-Clause
"""The mpirun command lines that hold inside a lab, one function per MPI."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from offpath.lab.plan import SUBNET, SUBNET_BITS, Plan
from offpath.launch import mpis

AGENT = Path(__file__).parent / "agent"
SUBNET_MASK = f"{SUBNET}.0/{SUBNET_BITS}"
GID_INDEX = "0"  # by other addresses of an RDMA device Debian's software RoCE loses what a node sends to itself
_REMOTE = {"plm_rsh_agent": str(AGENT), "plm_rsh_no_tree_spawn": "1"}


def mpirun_command(mpi: str, plan: Plan, ppn: int, np: int) -> list[str]:
    """mpirun with everything that must stand before the program; rank r runs on node r // ppn."""
    launcher = mpis.launcher(mpi)
    if mpi == mpis.MPICH:
        return _mpich(launcher, plan, ppn, np)
    command = _openmpi(launcher, plan, ppn, np)
    # Open MPI 4.1.4 calls its memory hook of spml/ucx when that is gone: every program would crash in shmem_finalize
    return [*command, "--mca", "memory", "^patcher"] if mpi == mpis.OPENSHMEM else command


@contextlib.contextmanager
def own_sessions(mpi: str, plan: Plan) -> Iterator[list[str]]:
    """Options for what launch.local.own_sessions does by a variable, in a folder of all nodes, gone afterwards."""
    if mpi == mpis.MPICH or plan.rdma:  # machines have a /tmp of their own
        yield []
        return
    folder = tempfile.mkdtemp(prefix="openmpi-", dir=plan.state_dir)
    try:
        yield ["--mca", "orte_tmpdir_base", folder]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def native_variables(mpi: str, plan: Plan, crowded: bool) -> dict[str, str]:
    """What the MPI's own ranks need in a lab, offloaded or not."""
    variables = {}
    if plan.rdma:
        variables["UCX_IB_GID_INDEX"] = GID_INDEX
    elif mpi in (mpis.MPICH, mpis.OPENSHMEM):
        # All "nodes" have one machine id, so UCX would use shared memory between them
        variables |= {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}
    if mpi != mpis.MPICH and crowded:
        variables["OMPI_MCA_mpi_yield_when_idle"] = "1"
    return variables


def environment(plan: Plan) -> dict[str, str]:
    """By which an mpirun of either MPI that is started in the lab reaches its nodes without options."""
    settings = (
        _REMOTE
        | openmpi_settings(several=True)
        | {"hwloc_base_binding_policy": "none", "rmaps_base_oversubscribe": "1"}
    )
    return {
        **{f"OMPI_MCA_{name}": value for name, value in settings.items()},
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": str(AGENT), "HYDRA_IFACE": "br0",
        **native_variables(mpis.MPICH, plan, crowded=False), "OFFPATH_LAB": plan.name, **service_variables(plan),
    }  # fmt: skip


def service_variables(plan: Plan) -> dict[str, str]:
    """What services need in a lab. With RDMA they find their network by themselves."""
    if plan.rdma:
        return {"OFFPATH_SERVICE_START_TIMEOUT_MS": "120000"}  # an emulated processor is slow
    return {"OFFPATH_UCX_TLS": "tcp,self", "OFFPATH_UCX_NET_DEVICES": "eth0"}


def openmpi_settings(several: bool) -> dict[str, str]:
    """Open MPI's own, for a lab's links; `several`: ranks share a node."""
    return {
        "oob_tcp_if_include": SUBNET_MASK,
        "btl_tcp_if_include": SUBNET_MASK,
        "pml": "ob1",
        "osc": "sm,pt2pt",  # rdma of Open MPI 4.1 aborts and gives wrong results over TCP
        # vader (shared memory) tells nodes apart by host name, so it stays within a node
        "btl": "vader,tcp,self" if several else "tcp,self",
    }


def _openmpi(launcher: str, plan: Plan, ppn: int, np: int) -> list[str]:
    command = [launcher, "-np", str(np), "-H", _with_slots(plan.nodes, ppn), "--bind-to", "none"]
    for name, value in (_REMOTE | openmpi_settings(ppn > 1)).items():
        command += ["--mca", name, value]
    return command


def _mpich(launcher: str, plan: Plan, ppn: int, np: int) -> list[str]:
    remote = ["-launcher", "rsh", "-launcher-exec", str(AGENT), "-iface", "br0"]
    return [launcher, *remote, "-hosts", ",".join(plan.nodes), "-np", str(np), "-ppn", str(ppn)]


def _with_slots(nodes: Sequence[str], ppn: int) -> str:
    return ",".join(f"{node}:{ppn}" for node in nodes)
