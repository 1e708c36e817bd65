# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench ...`: the benchmarks are the modules of suite/. None is imported before it is used."""

import pkgutil

from offpath.base.commands import MEASURE, LazyGroup, group
from offpath.bench import machine_load, suite


class Benchmarks(LazyGroup):
    modules = {found.name: f"{suite.__name__}.{found.name}" for found in pkgutil.iter_modules(suite.__path__)}

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
