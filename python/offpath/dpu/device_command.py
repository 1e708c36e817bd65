# SPDX-License-Identifier: BSD-3-Clause
"""`offpath device ...`: starting and stopping standing devices."""

from __future__ import annotations

import os
import platform
import re
import shlex
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, processes
from offpath.base.errors import UserError
from offpath.base.sizes import parse_size
from offpath.dpu import service
from offpath.dpu.service import Architecture
from offpath.launch import checks

MOST_MEMORY = 1 << 50
THIS_MACHINE = next((one for one in Architecture if one == platform.machine()), Architecture.x86_64)

app = commands.group(
    "Standing devices for OpenMP target regions: services on a TCP port, also of an emulated Arm processor.",
    commands.PREPARE,
)


@app.command()
def start(
    name: Annotated[str, typer.Argument(help="What the device is called.")] = "dpu",
    arch: Annotated[
        Architecture, typer.Option(help="Its architecture; another than this machine's is emulated by qemu.")
    ] = THIS_MACHINE,
    listen: Annotated[
        str,
        typer.Option(
            help="HOST:PORT; without a port, or with 0, a free one. For programs of other machines: an address that "
            "they reach."
        ),
    ] = "127.0.0.1",
    key_file: Annotated[
        Optional[Path], typer.Option(help="What programs must know to use it. Default: ~/.config/offpath/device.key")
    ] = None,
    cores: Annotated[Optional[str], typer.Option(help="Cores of its regions, like 2,3 or 4-7. Default: any.")] = None,
    memory: Annotated[
        Optional[str], typer.Option(help="Most that one program can map, like 4G. Default: half of the machine's.")
    ] = None,
    max_clients: Annotated[Optional[int], typer.Option(min=1, help="Programs served at a time. Default: 64.")] = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay, and show what regions print, until Ctrl-C.")
    ] = False,
) -> None:
    """Start a device that stays until it is stopped, and print the variables by which programs use it.

    What regions print goes to the device's log; with --foreground it is seen here.

    Examples:

        offpath device start

        eval "$(offpath device start arm --arch aarch64)"; ./my_openmp_program

        offpath device start --listen 0.0.0.0:7001 --cores 0-3 --foreground
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,30}", name):
        raise UserError(f"{name} is not usable as a name. Use a letter, then letters, digits, - and _.")
    checks.core_list(cores)
    key = (key_file or service.default_key_file()).absolute()
    if not key.is_file():
        raise UserError(
            f"{key} is not a file (programs prove with it that they may use the device). Correct --key-file."
        )
    options = service.Options(
        name,
        arch.value,
        service.with_free_port(listen),
        key,
        cores,
        parse_size(memory, MOST_MEMORY) if memory else None,
        max_clients,
    )
    if foreground:
        words = service.command(options)
        console.note(f"device {name} listens on {options.listen}; Ctrl-C ends it")
        raise typer.Exit(processes.run(words, os.environ, capture=False, own_session=False).exit_status)
    record = service.start(options)
    kind = "emulated " if record.emulated else ""
    console.note(f"device {name} ({kind}{arch.value}) runs; what its regions print: {record.log}")
    print(f"export OFFPATH_DEVICES={shlex.quote(record.entry)} {service.KEY_VARIABLE}={shlex.quote(record.key_file)}")


@app.command()
def stop(
    name: Annotated[str, typer.Argument(help="Which device.")] = "dpu",
    everything: Annotated[bool, typer.Option("--all", help="Every device started here.")] = False,
) -> None:
    """Stop a device, also for the programs that use it now.

    Examples:

        offpath device stop

        offpath device stop arm

        offpath device stop --all
    """
    if everything:
        records = service.running()
    elif (record := service.load(name)) is not None:
        records = [record]
    else:
        raise UserError(f"No device named {name} runs (of those that `offpath device start` started here).", 1)
    for record in records:
        service.stop(record)
        console.note(f"device {record.name} is stopped")
