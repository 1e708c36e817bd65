#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps the dependency arrows between components, every include at a place that is known, and the promises that our
code never ends its host process and never lets who started a program with more rights than his say what it does.

Run from anywhere: tools/check_includes.py [ROOT]. Prints one line per violation; exit status 1 when there is any.
"""

import re
import sys
from pathlib import Path

# Component -> the components it stands on. Arrows are transitive: what a component stands on may use more below it.
# A component is a folder below src/, or one below the root; the longest name that fits a file is its component.
STANDS_ON = {
    "arguments": [],
    "base": [],
    "wire": ["base"],
    "session": ["base"],
    "memory": ["base"],
    "kernels": ["base"],
    "kernels/codecs": ["kernels"],
    "collective": ["memory", "kernels"],
    "remote": ["memory", "kernels"],
    "files": ["memory"],
    "policy": ["base"],
    "fabric": ["wire"],
    "multicast": ["base"],
    "seal": ["base"],
    "fabric/multicast": ["fabric", "seal"],
    "fabric/tcp": ["fabric/multicast"],
    "fabric/rdma": ["fabric/tcp"],
    "fabric/ucx": ["fabric"],
    "fabric/loopback": ["fabric"],
    "graph": ["memory", "kernels"],
    "engine/blocks": ["memory"],
    "engine/core": ["engine/blocks", "wire", "graph", "kernels/codecs"],
    "engine/runner": ["engine/core"],
    "engine/coding": ["fabric", "graph", "kernels/codecs"],
    "engine/carriers": ["engine/blocks", "engine/coding"],
    "engine/rooms": ["engine/carriers", "engine/runner"],
    "engine/multicasts": ["engine/rooms", "multicast"],
    "engine": ["engine/multicasts"],
    "ops": ["graph", "collective", "remote", "files", "policy"],
    "model": ["engine", "ops", "policy"],
    "sites": [],
    "tasks": ["session"],
    "device": ["session", "seal"],
    "executor": ["arguments", "device", "tasks"],
    "agent": ["device", "collective", "remote", "fabric", "tasks"],
    "service/tasks": ["engine", "device", "tasks"],
    "service": ["arguments", "service/tasks", "ops", "policy", "agent"],
    "watch": [],
    "client": ["session", "collective", "remote", "files", "policy", "tasks", "watch"],
    "frontends/attach": ["base"],
    "frontends/idle": [],
    "frontends/shmem": ["frontends/attach", "frontends/idle", "client"],
    "frontends/python": [],
    "frontends/petsc": ["frontends/attach", "client", "kernels"],
    "frontends/openmp": ["client", "device"],
    "frontends/openmp/compiler": [],
    "frontends/mpi/functions": ["frontends/idle", "client", "device"],
    "frontends/mpi/doorway": ["frontends/mpi/functions"],
    "frontends/mpi/abi": [],
    "frontends/mpi/native": ["frontends/mpi/abi", "frontends/mpi/functions", "frontends/attach"],
    "frontends/mpi/types": ["frontends/mpi/native"],
    "frontends/mpi/recording": ["frontends/mpi/native"],
    "frontends/mpi/job": ["frontends/mpi/native", "client"],
    "frontends/mpi/adapt": ["frontends/mpi/job"],
    "frontends/mpi/calls": ["frontends/mpi/adapt", "frontends/mpi/types"],
    "frontends/mpi/lanes": ["frontends/mpi/calls", "frontends/mpi/recording"],
    "frontends/mpi/requests": ["frontends/mpi/lanes"],
    "frontends/mpi/collectives": ["frontends/mpi/requests"],
    "frontends/mpi/rma": ["frontends/mpi/lanes", "ops"],
    "frontends/mpi/messages": ["frontends/mpi/lanes"],
    "frontends/mpi/files": ["frontends/mpi/lanes"],
    "frontends/mpi/regions": ["device"],
    "frontends/mpi/device": ["frontends/mpi/regions"],
    "frontends/mpi/proxy": ["frontends/mpi/lanes", "frontends/mpi/regions"],
    "frontends/mpi/lifetime": [
        "frontends/mpi/collectives",
        "frontends/mpi/rma",
        "frontends/mpi/messages",
        "frontends/mpi/files",
        "frontends/mpi/proxy",
    ],
    "include": [],
    "apps/kit": ["arguments"],
    "apps": ["apps/kit"],
    "apps/task_session": ["apps/kit", "include"],  # applications know nothing of Offpath, but for those that are tasks
    "apps/minimd/tasks": ["apps", "apps/task_session", "include"],
    "apps/amr/tasks": ["apps", "apps/task_session", "include"],
    "apps/bspmm/tasks": ["apps", "apps/task_session", "include"],
}
CHECKED = ("src", "frontends", "include", "apps")
FOUND_ONLY = ("bench", "tests", "fuzz")  # may use anything, but only what is there
INCLUDE_FOLDERS = ("src", "include", "frontends", ".")
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".inc", ".def", ".S"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
REFUSED = re.compile(r"\b(throw|abort\s*\(|exit\s*\(|quick_exit\s*\(|terminate\s*\(\s*\)|getenv\s*\()")
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def component_of(path: Path) -> str | None:
    """The component of a file given by its path below the root; None for what is no part of the arrows."""
    folders = path.parts[1:-1] if path.parts[0] == "src" else path.parts[:-1]
    names = ["/".join(folders[:length]) for length in range(len(folders), 0, -1)]
    if path.parts[0] not in CHECKED or not names:
        return None
    return next((name for name in names if name in STANDS_ON), names[0])


def reachable(component: str) -> set[str]:
    seen = {component}
    waiting = [component]
    while waiting:
        for below in STANDS_ON.get(waiting.pop(), []):
            if below not in seen:
                seen.add(below)
                waiting.append(below)
    return seen


def circles() -> list[str]:
    """Components that stand on themselves, by way of others or not."""
    return [name for name, below in STANDS_ON.items() if any(name in reachable(each) for each in below)]


def target_of(root: Path, file: Path, kind: str, name: str) -> Path | None:
    """The included file below the root; None: it is nowhere there."""
    beside = kind == '"' and file.relative_to(root).parts[0] in ("apps", *FOUND_ONLY)
    for place in (*([file.parent] if beside else []), *(root / folder for folder in INCLUDE_FOLDERS)):
        candidate = (place / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root)
    return None


def check_includes(root: Path, file: Path, text: str) -> list[str]:
    path = file.relative_to(root)
    here = component_of(path)
    if here is not None and here not in STANDS_ON:
        return [f"{path}:1: component {here} has no line in {Path(__file__).name} (who may use it?)"]
    problems = []
    for match in INCLUDE.finditer(text):
        kind, name = match.groups()
        where = f"{path}:{line_of(text, match.start(1))}:"
        target = target_of(root, file, kind, name)
        if target is None:
            if kind == '"':
                problems.append(f"{where} {name} is in none of our folders ({hint(path)})")
            continue
        there = component_of(target)
        if here is None or there is None or (there == "include" and here != "apps"):
            continue
        if there not in reachable(here):
            problems.append(f"{where} {here} may not include {name} ({there} is not below {here})")
    return problems


def hint(path: Path) -> str:
    if path.parts[0] in ("src", "frontends", "include"):
        return f"name it by its path from {path.parts[0]}/; a header of others goes in <>"
    return "a header of others goes in <>"


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
    problems = [f"{Path(__file__).name}: component {name} stands on itself" for name in circles()]
    for top in (*CHECKED, *FOUND_ONLY):
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
