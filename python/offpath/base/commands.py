# SPDX-License-Identifier: BSD-3-Clause
"""How commands become a command line: each module has an app of its own, and is imported when its command is used.

A module with one command:

    app = commands.alone()

    @app.command(rich_help_panel=commands.LOOK)
    def info_command(...):

What a command is called is said by whoever lists it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

import typer
from typer.core import TyperGroup

# Parts of the help.
FIRST = "Commands"
MEASURE = "Measure and predict"
LOOK = "See what is there"
PREPARE = "Prepare"

PASSES_ON = {"allow_interspersed_args": False}  # the last argument is a command line with options of its own


def alone() -> typer.Typer:
    return typer.Typer(rich_markup_mode="markdown", add_completion=False)


def group(help: str | None = None, part: str | None = None, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """Of several commands: `offpath lab ...`. Without help it is what the callback says."""
    app = typer.Typer(
        cls=cls, rich_markup_mode="markdown", no_args_is_help=True, add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.info.rich_help_panel = part
    if help is not None:
        app.info.help = help
    return app


class Modules(Mapping):
    """Commands by name; those of a module come when they are asked for."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def __getitem__(self, name: str):
        command = typer.main.get_command(importlib.import_module(self._modules[name]).app)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class LazyGroup(TyperGroup):
    """Starting a program must not wait for charts, and a launcher may start `offpath run` once for each rank."""

    modules: Mapping[str, str] = {}

    def __init__(self, **attributes) -> None:
        super().__init__(**attributes)
        self.commands = Modules(self.modules)

    def list_commands(self, ctx) -> list[str]:
        return list(self.modules)
