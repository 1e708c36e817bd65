# SPDX-License-Identifier: BSD-3-Clause
"""Which commands there are, in the order in which help shows them. In which part of it one stands its module says."""

from __future__ import annotations

from typing import Annotated

import typer

from offpath.base.commands import LazyGroup, group


class Commands(LazyGroup):
    modules = {
        "run": "offpath.run.run_command",
        "plan": "offpath.plan.commands",
        "tune": "offpath.bench.tune_command",
        "report": "offpath.telemetry.report_command",
        "lab": "offpath.lab.commands",
        "demo": "offpath.bench.demo",
        "bench": "offpath.bench.commands",
        "profile": "offpath.plan.profile_command",
        "calibrate": "offpath.plan.calibrate_command",
        "split": "offpath.split.split_command",
        "train-advice": "offpath.plan.training_command",
        "info": "offpath.run.info_command",
        "selftest": "offpath.bench.selftest_command",
        "top": "offpath.telemetry.top_command",
        "service": "offpath.run.service_command",
        "devices": "offpath.dpu.devices_command",
        "dpus": "offpath.dpu.dpus_command",
        "policy": "offpath.run.policy_command",
        "device": "offpath.dpu.device_command",
        "completion": "offpath.reference.completion_command",
    }


app = group(cls=Commands)


@app.callback()
def offpath(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    """Takes work off a parallel program's critical path and runs it next to the program: on a DPU, or on spare cores.

    Examples:

        offpath run -- mpirun -np 4 ./my_program

        offpath info

        offpath demo
    """
