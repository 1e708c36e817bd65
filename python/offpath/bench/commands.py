# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench ...`: the benchmarks, each in a module of its own."""

from offpath.base.commands import MEASURE, LazyGroup, group
from offpath.bench import machine_load

NAMES = (
    "adapt", "alltoall", "amr", "collectives", "compression", "guest", "krylov", "minimd", "multicast", "onesided",
    "openmp", "plan", "pt2pt", "training", "tasks", "wire", "worker",
)  # fmt: skip


class Benchmarks(LazyGroup):
    modules = {name: f"offpath.bench.{name}" for name in NAMES}

    def get_command(self, ctx, cmd_name: str):
        """Each watches the machine while it measures."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            command.callback = machine_load.watched(command.callback)
        return command


app = group(part=MEASURE, cls=Benchmarks)


@app.callback()
def bench() -> None:
    """Measure what offloading gains on this machine, against the same MPI without it."""
