# SPDX-License-Identifier: BSD-3-Clause
"""The `offpath` command: what it is made of, and how its errors look."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer
from typer.core import TyperGroup

from offpath.base import console
from offpath.base.errors import DISK_FULL, UserError, write_error
from offpath.base.version import __version__
from offpath.bench import machine_load
from offpath.run.run_command import run

# What typer raises of wrong words. Its name and place differ from version to version, so a public heir leads to it: it
# is the one right below Exception.
TyperError = [kind for kind in typer.BadParameter.__mro__ if issubclass(kind, Exception)][-2]


def _bench_adapt() -> Callable:
    from offpath.bench.adapt import app_command

    return app_command


def _bench_alltoall() -> Callable:
    from offpath.bench.alltoall import app_command

    return app_command


def _bench_amr() -> Callable:
    from offpath.bench.amr import app_command

    return app_command


def _bench_collectives() -> Callable:
    from offpath.bench.collectives import app_command

    return app_command


def _bench_guest() -> Callable:
    from offpath.bench.guest import app_command

    return app_command


def _bench_minimd() -> Callable:
    from offpath.bench.minimd import app_command

    return app_command


def _bench_onesided() -> Callable:
    from offpath.bench.onesided import app_command

    return app_command


def _bench_pt2pt() -> Callable:
    from offpath.bench.pt2pt import app_command

    return app_command


def _bench_openmp() -> Callable:
    from offpath.bench.openmp import app_command

    return app_command


def _bench_krylov() -> Callable:
    from offpath.bench.krylov import app_command

    return app_command


def _bench_wire() -> Callable:
    from offpath.bench.wire import app_command

    return app_command


def _bench_tasks() -> Callable:
    from offpath.bench.tasks import app_command

    return app_command


def _bench_compression() -> Callable:
    from offpath.bench.compression import app_command

    return app_command


def _bench_multicast() -> Callable:
    from offpath.bench.multicast import app_command

    return app_command


def _bench_training() -> Callable:
    from offpath.bench.training import app_command

    return app_command


def _bench_worker() -> Callable:
    from offpath.bench.worker import app_command

    return app_command


def _info() -> Callable:
    from offpath.run.info_command import info

    return info


def _devices() -> Callable:
    from offpath.dpu.device_commands import devices

    return devices


def _device() -> typer.Typer:
    from offpath.dpu.device_commands import app as device_app

    return device_app


def _dpus() -> typer.Typer:
    from offpath.dpu.dpus_command import app as dpus_app

    return dpus_app


def _lab() -> typer.Typer:
    from offpath.lab.commands import app as lab_app

    return lab_app


def _tune() -> Callable:
    from offpath.bench.tune_command import tune_command

    return tune_command


def _calibrate() -> Callable:
    from offpath.plan.calibrate import calibrate_command

    return calibrate_command


def _profile() -> Callable:
    from offpath.plan.profile_command import profile_command

    return profile_command


def _plan() -> typer.Typer:
    from offpath.plan.commands import app as plan_app

    return plan_app


def _bench_plan() -> Callable:
    from offpath.bench.validation import bench_plan_command

    return bench_plan_command


def _demo() -> Callable:
    from offpath.bench.demo import demo_command

    return demo_command


def _policy() -> typer.Typer:
    from offpath.run.policy_command import app as policy_app

    return policy_app


def _completion() -> Callable:
    from offpath.reference.completion_command import completion_command

    return completion_command


def _report() -> Callable:
    from offpath.telemetry.report_command import report_command

    return report_command


def _top() -> Callable:
    from offpath.telemetry.top_command import top_command

    return top_command


def _split() -> Callable:
    from offpath.split.split_command import split_command

    return split_command


def _train_advice() -> Callable:
    from offpath.plan.training_command import train_advice_command

    return train_advice_command


class LazyGroup(TyperGroup):
    """Commands whose modules are imported only when they are used: starting a program must not wait for charts, and
    a launcher may start `offpath run` once for each rank."""

    lazy: dict[str, Callable[[], Callable | typer.Typer]] = {}
    passes_on = ("profile",)  # commands whose last argument is a command line with options of its own

    def list_commands(self, ctx) -> list[str]:
        return [*super().list_commands(ctx), *self.lazy]

    def get_command(self, ctx, cmd_name: str):
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command = self.lazy[cmd_name]()
        if isinstance(command, typer.Typer):
            group = typer.main.get_command(command)
            group.name = cmd_name
            group.params = [each for each in group.params if each.name not in ("install_completion", "show_completion")]
            return group
        holder = typer.Typer(rich_markup_mode="markdown", add_completion=False)
        settings = {"allow_interspersed_args": False} if cmd_name in self.passes_on else {}
        holder.command(cmd_name, context_settings=settings)(command)
        return typer.main.get_command(holder)


class RootGroup(LazyGroup):
    lazy = {
        "info": _info, "devices": _devices, "device": _device, "dpus": _dpus, "lab": _lab, "demo": _demo,
        "split": _split, "tune": _tune, "calibrate": _calibrate, "profile": _profile, "plan": _plan, "policy": _policy,
        "train-advice": _train_advice, "report": _report, "top": _top, "completion": _completion,
    }  # fmt: skip


class BenchGroup(LazyGroup):
    lazy = {
        "adapt": _bench_adapt,
        "alltoall": _bench_alltoall,
        "amr": _bench_amr,
        "collectives": _bench_collectives,
        "compression": _bench_compression,
        "guest": _bench_guest,
        "krylov": _bench_krylov,
        "minimd": _bench_minimd,
        "multicast": _bench_multicast,
        "onesided": _bench_onesided,
        "openmp": _bench_openmp,
        "plan": _bench_plan,
        "pt2pt": _bench_pt2pt,
        "training": _bench_training,
        "tasks": _bench_tasks,
        "wire": _bench_wire,
        "worker": _bench_worker,
    }

    def get_command(self, ctx, cmd_name: str):
        """Each watches the machine while it measures."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.callback is not None:
            command.callback = machine_load.watched(command.callback)
        return command


app = typer.Typer(
    cls=RootGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench_app = typer.Typer(
    cls=BenchGroup, no_args_is_help=True, rich_markup_mode="markdown", help="Measure what offloading gains here."
)


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


@bench_app.callback()
def bench() -> None:
    """Measure what offloading gains on this machine, against the same MPI without it."""


app.command(context_settings={"allow_interspersed_args": False})(run)
app.add_typer(bench_app, name="bench")


def main() -> None:
    """Runs the command line; whatever the user can put right is one line on stderr and an exit status that is not 0."""
    if sys.argv[1:] == ["--version"]:
        print(f"offpath {__version__}")
        return
    if not sys.argv[1:]:
        sys.argv.append("--help")
    try:
        status = app(standalone_mode=False, prog_name="offpath")
    except UserError as error:
        console.fail(str(error))
        status = error.exit_code
    except TyperError as error:
        console.fail(_usage_line(error))
        status = 2
    except MemoryError:
        console.fail("there is not enough memory for this (limits count, too). Give it less, or more memory.")
        status = 1
    except OSError as error:
        if write_error(error.errno) != DISK_FULL:
            raise
        console.fail(f"{DISK_FULL} (what was being written is not whole). Make room and run it again.")
        status = 1
    except (KeyboardInterrupt, typer.Abort):
        status = 130
    sys.exit(status if isinstance(status, int) else 0)


def _usage_line(error: TyperError) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "offpath"
    message = " ".join(error.format_message().split()).rstrip(".")
    return message + f". See: {command} --help"
