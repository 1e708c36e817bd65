# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are not Python, as commands: their options are read where they are defined."""

from __future__ import annotations

import re

from offpath.reference.model import Command, Option
from sources import ROOT, Call, files, literals

# How a kind of option is declared -> what it takes.
KINDS = {"flag": "", "version": "", "text": "TEXT", "number": "N", "real": "X", "word": "WORD"}
HELP = Option(("-h", "--help"), "", "Show all options, and end.")


def native() -> list[Command]:
    """Programs of ours; applications and benchmarks show theirs with --help."""
    return sorted(filter(None, map(_of_file, files("src", "frontends", "bench"))), key=lambda command: command.name)


def _of_file(file) -> Command | None:
    if "arguments::Arguments app(" not in file.read_text():
        return None
    calls: list[tuple[Call, list[str]]] = []
    for literal in literals(file):
        if literal.call.name in ("app", *("app." + kind for kind in KINDS)):
            if not calls or calls[-1][0] is not literal.call:
                calls.append((literal.call, []))
            calls[-1][1].append(literal.text)
    about, name, options = "", "", []
    for call, strings in calls:
        kind = call.name
        if kind == "app":
            name, about = strings[0], strings[1]
        elif kind == "app.version":
            options.append(Option(("--version",), "", "Show the version, and end."))
        elif strings[0].startswith("-"):
            options.append(Option((strings[0],), KINDS[kind[4:]], _capital(strings[-1])))
    return Command((name,), about.replace("\n", "\n\n"), (), (*options, HELP))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def compilers() -> dict[str, str]:
    """Name and help text of offpath-cc and offpath-c++."""
    source = (ROOT / "frontends" / "openmp" / "compiler" / "offpath-cc.in").read_text()
    text = re.search(r"<<'TEXT'\n(.*?)\nTEXT", source, re.DOTALL)[1]
    found = {}
    for name, language, variable, cmake, suffix, clang in (
        ("offpath-cc", "C", "CC", "C", "c", "clang-14"),
        ("offpath-c++", "C++", "CXX", "CXX", "cpp", "clang++-14"),
    ):
        values = {"NAME": name, "LANGUAGE": language, "VARIABLE": variable, "CMAKE": cmake, "SUFFIX": suffix}
        found[name] = re.sub(r"@([A-Z]+)@", lambda mark, of=values | {"CLANG": clang}: of[mark[1]], text)
    return found
