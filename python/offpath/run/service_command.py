# SPDX-License-Identifier: BSD-3-Clause
"""`offpath service restart`: other services in the place of those that run, while their jobs do."""

from __future__ import annotations

import time

from offpath.base import commands, console
from offpath.base.errors import UserError
from offpath.telemetry import jobs, observation

app = commands.group("The services of running jobs.", commands.PREPARE)


@app.callback()
def service() -> None:
    pass


@app.command()
def restart(
    job: jobs.Which = None,
) -> None:
    """Replace the services of your jobs on this node, as after an upgrade, while the jobs run.

    Each service starts another one from the file that it was started from itself, and gives it its place. Its processes
    go there as they communicate, and it ends when the last one has. Where no other one starts, nothing changes.

    Examples:

        offpath service restart

        offpath service restart 12345
    """
    failures = []
    with jobs.watched(job) as found:
        for each in found:
            try:
                _replace(each)
            except UserError as error:
                failures.append(str(error))
            except observation.NoService:
                failures.append(f"job {each.name} has ended meanwhile. Nothing is left to be replaced.")
    for failure in failures[:-1]:
        console.fail(failure)
    if failures:
        raise UserError(failures[-1], 1)


def _replace(job: jobs.Job) -> None:
    before, began = job.last.process, time.monotonic()
    process, clients = observation.replace(job.observation.path)
    took_ms = (time.monotonic() - began) * 1000
    processes = "process" if clients == 1 else "processes"
    change = (
        f"service {process} takes the place of {before} after {took_ms:.0f} ms; {clients} {processes} go there as they "
        "communicate"
        if process
        else f"service {before} serves {clients} {processes} of hosts until their agents are replaced, too; run the "
        "command there"
    )
    console.out.print(f"job {job.name}: {change}", markup=False, soft_wrap=True)
