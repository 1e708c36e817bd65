#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps the dependency arrows between components, and the promises that our code never ends its host process and never
lets who started a program with more rights than his say what it does.

Run from anywhere: tools/check_includes.py [ROOT]. Prints one line per violation; exit status 1 when there is any.
"""

import re
import sys
from pathlib import Path

# Component -> the components it stands on. Arrows are transitive: what a component stands on may use more below it.
STANDS_ON = {
    "base": [],
    "wire": ["base"],
    "session": ["base"],
    "memory": ["base"],
    "kernels": ["base"],
    "policy": ["base"],
    "fabric": ["wire"],
    "fabric/ucx": ["fabric"],
    "fabric/loopback": ["fabric"],
    "graph": ["memory", "kernels"],
    "engine": ["fabric", "graph"],
    "ops": ["graph", "policy"],
    "model": ["ops", "policy", "wire"],
    "device": ["session"],
    "executor": ["device"],
    "service": ["engine", "ops", "session", "policy", "device", "fabric/ucx"],
    "client": ["session", "wire", "policy"],
    "frontends/attach": ["base"],
    "frontends": ["frontends/attach", "client", "device", "kernels"],
    "include": [],
    "apps": [],
}
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".inc", ".def"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
REFUSED = re.compile(r"\b(throw|abort\s*\(|exit\s*\(|quick_exit\s*\(|terminate\s*\(\s*\)|getenv\s*\()")
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def component_of(path: Path) -> str | None:
    """The component of a file given by its path below the root; None for what is no part of the arrows."""
    top, *rest = path.parts
    inside = rest if top == "src" else [top, *rest]
    folder = "/".join(inside[:2])
    if folder in STANDS_ON:
        return folder
    return inside[0] if top == "src" or top in STANDS_ON else None


def reachable(component: str) -> set[str]:
    seen = {component}
    waiting = [component]
    while waiting:
        for below in STANDS_ON.get(waiting.pop(), []):
            if below not in seen:
                seen.add(below)
                waiting.append(below)
    return seen


def target_of(root: Path, file: Path, kind: str, name: str) -> Path | None:
    """The included file below the root; None when it belongs to a library of others."""
    places = [root / "src", root / "include", root / "frontends", root]
    if kind == '"':
        places.insert(0, file.parent)
    for place in places:
        candidate = (place / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root)
    first = Path(name).parts[0]
    return Path("src") / name if first in STANDS_ON and "/" in name else None  # one that does not exist (yet)


def check_includes(root: Path, file: Path, text: str) -> list[str]:
    here = component_of(file.relative_to(root))
    if here is None:
        return []
    if here not in STANDS_ON:
        return [f"{file.relative_to(root)}:1: component {here} has no line in {Path(__file__).name} (who may use it?)"]
    problems = []
    for match in INCLUDE.finditer(text):
        target = target_of(root, file, match[1], match[2])
        there = component_of(target) if target else None
        where = f"{file.relative_to(root)}:{line_of(text, match.start(1))}:"
        if there is None or (there == "include" and here != "apps"):
            continue
        if there not in reachable(here):
            problems.append(f"{where} {here} may not include {match[2]} ({there} is not below {here})")
        elif here == there == "frontends" and target.parts[1] != file.relative_to(root).parts[1]:
            problems.append(f"{where} front ends may not include each other ({match[2]})")
    return problems


def check_host_process(root: Path, file: Path, text: str) -> list[str]:
    """In src/ and frontends/ nothing may throw, abort or exit (errors are results), nor trust the environment."""
    if file.relative_to(root).parts[0] not in ("src", "frontends"):
        return []
    code = COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return [
        f"{file.relative_to(root)}:{line_of(code, match.start())}: '{match[1].strip(' (')}' is not allowed here; "
        + ("use secure_getenv" if match[1].startswith("getenv") else "return an error")
        for match in REFUSED.finditer(code)
    ]


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def check(root: Path) -> list[str]:
    root = root.resolve()
    problems = []
    for top in ("src", "frontends", "include", "apps"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix in SUFFIXES and file.is_file():
                text = file.read_text(errors="replace")
                problems += check_includes(root, file, text) + check_host_process(root, file, text)
    return problems


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    problems = check(root)
    for problem in problems:
        print(problem)
    print(
        f"check_includes: {len(problems)} violation{'s' * (len(problems) != 1)}"
        if problems
        else "check_includes: clean"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
