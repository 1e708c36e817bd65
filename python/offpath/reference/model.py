# SPDX-License-Identifier: BSD-3-Clause
"""The commands and options as plain data, read from what typer runs. Nothing about a command is written down twice."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import typer

TYPES = {
    "bool": "", "str": "TEXT", "int": "N", "float": "NUMBER", "file": "FILE", "path": "FILE", "directory": "FOLDER",
    "int range": "N", "float range": "NUMBER", "list[str]": "TEXT...", "list[file]": "FILE...",
    "list[path]": "FILE...", "list[int]": "N...",
}  # fmt: skip


@dataclass(frozen=True)
class Option:
    """An option, or an argument if it has no names."""

    names: tuple[str, ...]
    value: str  # what follows it: FILE; empty for a flag
    help: str
    default: str = ""
    required: bool = False
    repeated: bool = False
    choices: tuple[str, ...] = ()

    def takes_file(self) -> bool:
        return bool(
            {"FILE", "FOLDER", "PROFILE", "COMMAND", "PROGRAM", "TRACE"} & set(self.value.rstrip(".").split("|"))
        )


@dataclass(frozen=True)
class Command:
    path: tuple[str, ...]  # ("offpath", "lab", "up")
    help: str
    arguments: tuple[Option, ...] = ()
    options: tuple[Option, ...] = ()
    commands: tuple[Command, ...] = field(default=())
    runs_command: bool = False  # its last arguments are a command line with options of its own
    part: str = ""  # of the help of what it belongs to

    @property
    def name(self) -> str:
        return " ".join(self.path)

    @property
    def summary(self) -> str:
        """The first sentence of its help."""
        first = " ".join(self.help.split("\n\n")[0].split())
        return re.split(r"(?<=[.:])\s(?=[A-Z`])", first)[0].rstrip(".:")

    @property
    def synopsis(self) -> str:
        words = [self.name]
        if self.options:
            words.append("[OPTIONS]")
        if self.commands:
            words.append("COMMAND")
        for each in self.arguments:
            if self.runs_command and each.repeated:
                words.append("--")
            text = each.value if each.value.endswith("...") or not each.repeated else each.value + "..."
            words.append(text if each.required else f"[{text}]")
        return " ".join(words)

    def all(self) -> Iterator[Command]:
        yield self
        for command in self.commands:
            yield from command.all()


def command_line(app: typer.Typer) -> Command:
    """`offpath`, with all that it has; `app` is offpath.cli.commands.app."""
    return of_root(typer.main.get_command(app))


def of_root(command) -> Command:
    """The same, of what typer has made of it."""
    return _command(command, ("offpath",), None)


def _command(command, path: tuple[str, ...], parent) -> Command:
    context = command.make_context(path[-1], [], parent=parent, resilient_parsing=True)
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    options = [_option(each, context) for each in shown if each.param_type_name == "option"]
    arguments = [_option(each, context) for each in shown if each.param_type_name == "argument"]
    subcommands = []
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        subcommand = command.get_command(context, name)
        if not subcommand.hidden:
            subcommands.append(_command(subcommand, (*path, name), context))
    return Command(
        path,
        inspect.cleandoc(command.help or ""),
        tuple(arguments),
        (*options, Option(tuple(context.help_option_names), "", "Show what it does and all options, and end.")),
        tuple(subcommands),
        not context.allow_interspersed_args and not subcommands and bool(arguments),
        getattr(command, "rich_help_panel", None) or "",
    )


def _option(parameter, context) -> Option:
    described = _type(parameter, context)
    choices = tuple(described.split("|")) if "|" in described else ()
    value = parameter.metavar or (described if choices else TYPES.get(described, described.upper()))
    named = parameter.param_type_name == "option"
    if not named and not parameter.metavar:
        value = parameter.name.upper()
    if value.startswith("["):  # its author has said that it may be left out
        value = value.strip("[].")
    default = parameter.default
    shown = default is not None and not callable(default) and default not in (False, (), [], "")
    if isinstance(default, (list, tuple)):
        default = ",".join(map(str, default))
    return Option(
        (*parameter.opts, *parameter.secondary_opts) if named else (),
        "" if getattr(parameter, "is_flag", False) else value,
        inspect.cleandoc(getattr(parameter, "help", None) or ""),
        str(getattr(default, "value", default)) if shown and named and default is not True else "",
        parameter.required,
        bool(getattr(parameter, "multiple", False)) or parameter.nargs == -1,
        choices,
    )


def _type(parameter, context) -> str:
    if hasattr(parameter, "display_type"):  # typer with its own click
        return parameter.display_type(context).strip("<>")
    if hasattr(parameter.type, "choices"):
        return "|".join(map(str, parameter.type.choices))
    return parameter.type.name
