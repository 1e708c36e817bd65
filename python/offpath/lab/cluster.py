# SPDX-License-Identifier: BSD-3-Clause
"""An emulated cluster: nodes with a host and a DPU behind one rate-limited port, and MPI programs started on it.

States: planned (constructed) -> up -> down. `down` works from any state and more than once. A lab used as a context
manager belongs to its process: should that be killed, the next lab to come up removes it.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from offpath.base import processes
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.base.processes import Completed
from offpath.lab import dpus, inventory, launchers, machines, network, quota, state, virtual
from offpath.lab.plan import HEAD, Loss, Machines, Plan, parse_latency
from offpath.launch import injection, mpis, stats
from offpath.launch.local import available_cores, native_environment

ENTER = Path(__file__).parent / "enter"
SERVICE_END_PATIENCE_S = 5.0


class Lab:
    """`with Lab(nodes=2, rate="250mbit") as lab: lab.mpirun("openmpi", 1, ["./program"], offload=True)`.

    Needs root. Raises UserError for arguments that make no sense, before anything is made.
    """

    def __init__(
        self,
        nodes: int = 2,
        rate: str = "250mbit",
        mtu: int = 9000,
        name: str | None = None,
        dpu_slowdown: float = 1.0,
        cores_per_node: int = 1,
        dpu_arch: str | None = None,
        latency: str = "0",
        dpus: int = 0,
        dpu_cores: int = 0,
        link_rate: str | None = None,
        link_latency: str = "0",
        loss: Loss | None = None,
        rdma: bool = False,
    ):
        """`dpus`: so many of each node are machines of their own; 0: a DPU is its node with another network.

        `rdma`: nodes are virtual machines with an RDMA device, and have no DPUs: services are beside their programs.
        """
        name = f"lab{os.getpid()}t{time.monotonic_ns() % 10**6}" if name is None else name
        cores = available_cores()
        plan = Plan.make(name, nodes, rate, mtu, dpu_slowdown, cores_per_node, cores)
        if not dpus and (dpu_cores or link_rate or parse_latency(link_latency)):
            raise UserError("DPUs have cores and links of their own only when they are machines. Give --dpus 1, too.")
        if rdma and (dpus or dpu_arch or dpu_slowdown != 1):
            raise UserError(
                "Nodes with RDMA have no DPUs (services run beside their programs). Leave out --rdma, or DPUs."
            )
        own = None
        if dpus:
            own = Machines.make(nodes, dpus, dpu_cores, link_rate, link_latency, cores, nodes * cores_per_node)
        self.plan = dataclasses.replace(
            plan, dpu_arch=dpu_arch, latency_s=parse_latency(latency), machines=own, loss=loss, rdma=rdma
        )

    @classmethod
    def attach(cls, name: str) -> Lab:
        """The lab of that name, brought up by someone else. Raises UserError when it is not up."""
        lab = cls.__new__(cls)
        lab.plan = state.load(name)
        return lab

    @property
    def name(self) -> str:
        return self.plan.name

    def up(self, *, owned: bool = False, progress: Callable[[str], None] = lambda step: None) -> None:
        """Makes the lab, or raises UserError and leaves nothing behind."""
        state.require_root()
        _check_tools()
        if self.plan.rdma:
            virtual.boot_folder()
        state.remove_abandoned()
        claimed = False
        try:
            with processes.undisturbed():
                state.claim(self.plan)
                claimed = True
            state.prepare(self.plan, os.getpid() if owned else None)
            network.build(self.plan, progress)
            quota.apply(self.plan)
            if self.plan.machines:
                progress("DPUs")
                machines.boot(self.plan, [str(ENTER)])
            if self.plan.rdma:
                progress("machines")
                virtual.boot(self.plan)
            if self.plan.dpu_arch:
                progress("device services")
                dpus.start(self.plan, self.inside)
            state.save(self.plan)
        except BaseException:
            if claimed:
                self.down()
            raise

    def down(self) -> None:
        """Ends every process in the lab and removes all of it."""
        inventory.remove(self.name)

    def __enter__(self) -> Lab:
        self.up(owned=True)
        return self

    def __exit__(self, *exception) -> None:
        self.down()

    def inside(self, place: str, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` at `place`: head, nodeI, nodeI-dpu or its second, nodeI-dpu2."""
        return [str(ENTER), self.name, place, *argv]

    def mpirun(
        self,
        mpi: str,
        ppn: int,
        argv: Sequence[str],
        offload: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        *,
        np: int | None = None,
        mpi_options: Sequence[str] = (),
        capture: bool = True,
    ) -> Completed:
        """Runs `argv` on the lab with `ppn` ranks per node, all on their node's cores, with or without Offpath.

        `np` ranks in all if given (default: every node full). `env` reaches every rank and wins over what is set here.
        MPICH yields while it waits when there are more ranks than cores.
        When it returns or raises, no process of the run is left. Raises subprocess.TimeoutExpired after `timeout` s.
        """
        state.load(self.name)
        np = ppn * self.plan.node_count if np is None else np
        if ppn < 1 or not 1 <= np <= ppn * self.plan.node_count:
            raise UserError(
                f"{np} ranks do not fit on {self.plan.node_count} nodes with {ppn} ranks each. Change --np or --ppn."
            )
        program = mpis.executable(argv[0])
        program = os.path.abspath(program) if os.sep in program else program
        crowded = np > len({core for cores in self.plan.node_cores for core in cores})
        run_id = uuid.uuid4().hex
        with stats.private_file(self.plan.state_dir) as stats_file, launchers.own_sessions(mpi, self.plan) as own:
            chosen = self._variables(mpi, offload, stats_file, crowded, env or {})
            command = [*launchers.mpirun_command(mpi, self.plan, ppn, np), *own, *mpi_options, program, *argv[1:]]
            command, _ = injection.with_variables(command, chosen)
            environment = os.environ | native_environment(mpi, crowded)
            environment |= {"OFFPATH_LAB": self.name, "OFFPATH_LAB_RUN": run_id}
            environment["OFFPATH_LAB_SHARED"] = os.path.dirname(program) if os.sep in program else ""
            patience = 0.0
            try:
                command = self.inside(HEAD, command)
                result = processes.run(command, environment, capture=capture, timeout=timeout)
                patience = SERVICE_END_PATIENCE_S if result.returncode == 0 else 0.0
            finally:
                inventory.end_processes(lambda: inventory.processes_of_run(run_id), patience)
                if self.plan.rdma:
                    virtual.end_run(self.plan, self.inside, run_id, patience)
            result.stats = stats.read(chosen.get("OFFPATH_STATS_FILE", stats_file))
        result.raise_if_interrupted()
        return result

    def _variables(
        self, mpi: str, offload: bool, stats_file: str, crowded: bool, env: Mapping[str, str]
    ) -> dict[str, str]:
        chosen = launchers.native_variables(mpi, self.plan, crowded)
        if offload:
            chosen |= launchers.service_variables(self.plan)
            if self.plan.machines:
                chosen["OFFPATH_DPUS"] = self.dpus()
            elif not self.plan.rdma:
                chosen["OFFPATH_SERVICE_WRAPPER"] = f"{ENTER} {self.name} %h-dpu"
        # It also cures a hang of MPICH in MPI_Finalize, so it is there with and without yielding
        shim = mpi == mpis.MPICH and (crowded or paths().yield_library.exists())
        options = injection.measured_run(env, stats_file, share=True) if offload else None
        return injection.measured_variables(mpi, chosen | dict(env), options, crowded if shim else None)

    def dpus(self) -> str:
        """OFFPATH_DPUS of this lab: each node's own."""
        entries = {
            node: ",".join(
                machines.entry(self.plan, dpu, str(ENTER), str(paths().service)) for dpu in self.plan.dpus_of(node)
            )
            for node in self.plan.nodes
        }
        return ";".join(f"{node}={entry}" for node, entry in entries.items())


def _check_tools() -> None:
    missing = [tool for tool in ("ip", "tc", "nsenter", "unshare", "setpriv", "taskset") if not shutil.which(tool)]
    if missing:
        raise UserError(f"The lab needs {', '.join(missing)} (not found in PATH). Run: make setup")
    if any(character.isspace() for character in str(ENTER)):
        raise UserError(f"The lab cannot run from {ENTER.parent} (a space in the path). Move Offpath elsewhere.")
