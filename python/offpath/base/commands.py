# SPDX-License-Identifier: BSD-3-Clause
"""How commands become a command line: each module has an app of its own, and is imported when its command is used.

A module with one command:

    app = commands.alone()

    @app.command(rich_help_panel=commands.LOOK)
    def info_command(...):

What a command is called is said by whoever lists it. Where it has many options, a dataclass holds those of one
concern, each field an option, and the command takes objects:

    @app.command()
    @commands.by_concern
    def run(command: Annotated[...], offload: Offload, recording: Recording) -> None:
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, get_type_hints

import typer
from typer.core import TyperGroup

# Parts of the help.
FIRST = "Commands"
MEASURE = "Measure and predict"
LOOK = "See what is there"
PREPARE = "Prepare"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
CommandLine = Annotated[
    list[str], typer.Argument(metavar="COMMAND", help="The program, with its mpirun if it has one.")
]
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


def by_concern(function: Callable[..., None]) -> Callable[..., None]:
    """The same as typer wants it: fields of dataclasses among its parameters are parameters of their own. They stand
    in a part of the help whose title is what the dataclass says of itself."""
    hints = get_type_hints(function, include_extras=True)
    concerns = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in concerns:
            inner = get_type_hints(concerns[name], include_extras=True)
            for field in fields(concerns[name]):
                option = copy.copy(inner[field.name].__metadata__[0])  # others may have it in another part
                option.rich_help_panel = (concerns[name].__doc__ or "").rstrip(".")
                annotation = Annotated[inner[field.name].__origin__, option]
                parameters.append(parameter.replace(name=field.name, annotation=annotation, default=field.default))
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @functools.wraps(function)
    def flat(**given) -> None:
        objects = {name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
                   for name, kind in concerns.items()}  # fmt: skip
        function(**given, **objects)

    del flat.__wrapped__  # whoever looks for the signature would find that one
    flat.__signature__ = inspect.Signature(parameters)
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


class Modules(Mapping):
    """Commands by name; those of a module come when they are asked for."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def __getitem__(self, name: str):
        command = typer.main.get_command(importlib.import_module(self._modules[name]).app)
        command.name = name
        _want_finite(command)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def _want_finite(command) -> None:
    """No limit of an option keeps out nan, which is neither less nor more, and few are asked for infinity."""

    def finite(context, parameter, value):
        if isinstance(value, float) and not math.isfinite(value):
            raise typer.BadParameter(f"{value} is not a number", ctx=context, param=parameter)
        return value

    for parameter in command.params:
        parameter.callback = parameter.callback or finite
    nested = getattr(command, "commands", {})
    for each in () if isinstance(nested, Modules) else nested.values():
        _want_finite(each)


class LazyGroup(TyperGroup):
    """Starting a program must not wait for charts, and a launcher may start `offpath run` once for each rank."""

    modules: Mapping[str, str] = {}

    def __init__(self, **attributes) -> None:
        super().__init__(**attributes)
        self.commands = Modules(self.modules)

    def list_commands(self, ctx) -> list[str]:
        return list(self.modules)
