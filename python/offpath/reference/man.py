# SPDX-License-Identifier: BSD-3-Clause
"""Man pages of commands, in the macros of man(7)."""

from __future__ import annotations

import inspect
import os
import re
import time
from collections.abc import Iterator, Mapping

from offpath.reference.model import Command, Option
from offpath.reference.prose import blocks, sentence

EXIT_STATUS = {
    "0": "all went well",
    "1": "what was asked for failed: a measurement, a check, a program's own status 1",
    "2": "the command line, a file or a variable is wrong; one line on stderr says what to do",
    "130": "ended by Ctrl-C",
    "other": "of a program that it ran: that program's own",
}


def pages(root: Command, version: str, settings: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """By file name: a page for offpath, and one for each of its commands with all that it has. `settings`: meaning and
    default of each variable."""
    found = {
        "offpath.1": page(root, version, see=[f"offpath-{each.path[-1]}" for each in root.commands], settings=settings)
    }
    for command in root.commands:
        found[f"offpath-{command.path[-1]}.1"] = page(command, version, see=["offpath"])
    return found


def page(command: Command, version: str, see=(), settings: Mapping[str, tuple[str, str]] | None = None) -> str:
    name = "-".join(command.path)
    lines = [
        '.\\" Made from the definitions of the command line; not to be edited.',
        _title(name, version),
        ".SH NAME", f"{_roff(name)} \\- {_roff(command.summary)}",
        ".SH SYNOPSIS",
    ]  # fmt: skip
    shown = (
        [each for each in command.all() if not each.commands]
        if command.commands and len(command.path) > 1
        else [command]
    )
    for index, each in enumerate(shown):
        lines += [".br"] * (index > 0) + [_synopsis(each)]
    lines += [".SH DESCRIPTION", *_prose(command.help)]
    if len(command.path) == 1 and command.commands:
        lines += [".SH COMMANDS"]
        for each in command.commands:
            lines += [".TP", f".BR {'-'.join(each.path)} (1)", _roff(each.summary) + "."]
    lines += _options(command, ".SH ARGUMENTS", ".SH OPTIONS")
    if len(command.path) > 1:
        for each in list(command.all())[1:]:
            if not each.commands:
                lines += [f'.SH "{each.name.upper()}"', *_prose(each.help), *_options(each, None, ".SS Options")]
    if settings:
        lines += [".SH ENVIRONMENT"]
        for variable, (meaning, default) in settings.items():
            text = sentence(meaning) + (f" Default: {default}." if default else "")
            lines += [".TP", f".B {_roff(variable)}", _roff(text)]
    if len(command.path) == 1 and command.commands:
        lines += [".SH EXIT STATUS"]
        for status, meaning in EXIT_STATUS.items():
            lines += [".TP", f".B {status}", _roff(sentence(meaning))]
    if see:
        references = "\n".join(f".BR {each} (1)" + "," * (each != see[-1]) for each in see)
        lines += [".SH SEE ALSO", references]
    return "\n".join(lines) + "\n"


def plain_page(name: str, text: str, version: str) -> str:
    """Of a help text with headings in capitals at the left margin; its first line is NAME - what it is."""
    first, _, rest = text.strip().partition("\n")
    lines = [_title(name, version), ".SH NAME", _roff(first).replace(" \\- ", " \\- ", 1)]
    for part in re.split(r"^(?=[A-Z][A-Z ]+$)", rest, flags=re.MULTILINE):
        heading, _, body = part.strip("\n").partition("\n")
        if heading.strip():
            lines += [f".SH {heading}", ".nf", _roff(inspect.cleandoc("\n" + body), inline=False), ".fi"]
    return "\n".join(lines) + "\n"


def _title(name: str, version: str) -> str:
    """Dated as its package is, or today."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    return f'.TH {name.upper()} 1 {date} "Offpath {version}" "Offpath"'


def _synopsis(command: Command) -> str:
    rest = command.synopsis[len(command.name) :].strip()
    return f".B {_roff(command.name)}" + (f"\n{_roff(rest)}" if rest else "")


def _options(command: Command, arguments: str | None, options: str) -> Iterator[str]:
    described = [each for each in command.arguments if each.help]
    if described and arguments:
        yield arguments
    for each in described:
        yield from (".TP", f".I {_roff(each.value.rstrip('.'))}", _roff(_meaning(each)))
    if command.options:
        yield options
    for each in command.options:
        names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in each.names)
        yield from (".TP", names + (f" \\fI{_roff(each.value)}\\fR" if each.value else ""), _roff(_meaning(each)))


def _meaning(option: Option) -> str:
    text = sentence(option.help)
    if option.choices and option.value != "|".join(option.choices):
        text += f" One of {', '.join(option.choices)}."
    if option.repeated and option.names:
        text += " May be given several times."
    if option.default and "default" not in text.lower():
        text += f" Default: {option.default}."
    return text.strip() or "See above."


def _prose(text: str) -> Iterator[str]:
    first = True
    for block in blocks(text):
        if block.kind == "code":
            yield from (".PP", ".nf", ".RS", _roff(block.text, inline=False), ".RE", ".fi")
        elif block.kind == "item":
            yield from (".IP \\(bu 2", _roff(block.text))
        else:
            yield from ([] if first else [".PP"])
            yield _roff(block.text)
        first = False


def _roff(text: str, inline: bool = True) -> str:
    """Escaped: backslashes, hyphens that are typed, and lines that would be taken for requests."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    if inline:
        text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text).replace("**", "")
    return "\n".join(("\\&" + line) if line.startswith((".", "'")) else line for line in text.split("\n"))
