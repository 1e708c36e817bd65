# SPDX-License-Identifier: BSD-3-Clause
"""Programs of measured_programs/programs.json: how they are made ready and run in a lab, and what they compute.

A program is a row there, and a folder of that name with its input, if it has one."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NoReturn, Optional

import typer
from offpath.base import console
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.bench import machine_load
from offpath.lab import Lab
from offpath.launch.mpis import MPICH, OPENMPI

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 120
FOLDER = ROOT / "build" / "measured-programs"
FETCHED = ROOT / "build" / "real-programs"


@dataclass(frozen=True)
class Program:
    """A row of the list. Its commands run in its folder; {mpi}, {cc}, {fetched}, {apps} and {inputs} are filled in."""

    name: str
    does: str
    source: str  # a package of Debian, of PyPI, or this project
    run: Sequence[str]
    results: str  # what it computes: numbers, by a regular expression
    seconds: str = ""  # what it says of its time; else the whole run counts
    says: str = ""  # what it says if its own check is content
    output: str = ""  # the file in which it says so, else its standard output
    build: Sequence[Sequence[str]] = ()
    mpis: Sequence[str] = (OPENMPI,)
    tolerance: float = 1e-8  # sums of real numbers may be bracketed in another way, and iterations carry that on
    env: Mapping[str, str] = field(default_factory=dict)

    def filled(self, command: Sequence[str], mpi: str) -> list[str]:
        values = {"mpi": mpi, "cc": f"mpicc.{mpi}", "fetched": FETCHED, "apps": paths().apps / mpi}
        values |= {"inputs": LIST.parent}
        return [word.format_map(values) for word in command]

    def prepared(self, mpi: str) -> Path:
        """Its folder, made anew. Raises UserError where it is not installed."""
        folder = FOLDER / mpi / self.name
        shutil.rmtree(folder, ignore_errors=True)
        inputs = LIST.parent / self.name
        shutil.copytree(inputs, folder) if inputs.is_dir() else folder.mkdir(parents=True)
        for command in self.build:
            done = subprocess.run(
                self.filled(command, mpi), cwd=folder, capture_output=True, text=True, check=False,
                env=os.environ | self.environment(mpi),
            )  # fmt: skip
            if done.returncode != 0:
                raise UserError(f"{self.name} cannot be built: {done.stderr.strip()[-300:]}", 1)
        if not shutil.which(folder / self.argv(mpi)[0]) and not shutil.which(self.argv(mpi)[0]):
            raise UserError(f"{self.name} is not installed ({self.source}).", 1)
        return folder

    def argv(self, mpi: str) -> list[str]:
        return self.filled(self.run, mpi)

    def environment(self, mpi: str) -> dict[str, str]:
        path = [FETCHED / "mpich"] if mpi == MPICH else []
        python = os.pathsep.join(map(str, [*path, FETCHED / "python"]))
        return {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": python} | dict(self.env)


LIST = Path(__file__).parent / "measured_programs" / "programs.json"
PROGRAMS = {name: Program(name, **row) for name, row in json.loads(LIST.read_text()).items()}


@dataclass(frozen=True)
class Ran:
    """One run of a program; `results` are empty where it failed, or its own check did."""

    results: list
    seconds: float
    whole_s: float
    status: int
    words: str
    stats: list[dict]


def run(program: Program, mpi: str, ppn: int, offload: bool, env: Mapping[str, str], lab: Lab) -> Ran:
    """In a copy of its folder, as programs write there."""
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="run-") as home:
        folder = Path(shutil.copytree(FOLDER / mpi / program.name, Path(home) / "run"))
        argv = ["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *program.argv(mpi)]
        begin = time.monotonic()
        done = lab.mpirun(mpi, ppn, argv, offload, program.environment(mpi) | dict(env), LIMIT_S)
        whole_s = time.monotonic() - begin
        file, text = folder / program.output, done.stdout or ""
        if program.output:
            text = file.read_text() if file.exists() else ""
    seconds = re.findall(program.seconds, text, re.MULTILINE) if program.seconds else [whole_s]
    right = done.returncode == 0 and seconds and re.search(program.says, text, re.MULTILINE)
    results = re.findall(program.results, text, re.MULTILINE) if right else []
    words = f"{done.stdout or ''}{done.stderr or ''}".strip()[-2000:]
    return Ran(results, float(seconds[-1]) if results else 0.0, whole_s, done.returncode, words, done.stats)


def words_of(results: list) -> list[str]:
    text = " ".join(each if isinstance(each, str) else " ".join(each) for each in results)
    return re.split(r"[,\s]+", text.strip())


def same(ours: list, theirs: list, tolerance: float) -> bool:
    pairs = list(itertools.zip_longest(words_of(ours), words_of(theirs), fillvalue=""))
    return all(one == other or alike(one, other, tolerance) for one, other in pairs)


def alike(one: str, other: str, tolerance: float) -> bool:
    try:
        a, b = float(one), float(other)
    except ValueError:
        return False
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


# Options of tools that measure them.
Nodes = Annotated[int, typer.Option(min=2, help="Of the lab.")]
RanksOnEach = Annotated[int, typer.Option(min=1, help="Ranks on each.")]
Rate = Annotated[str, typer.Option(help="Rate of the lab's links.")]
Runs = Annotated[int, typer.Option(min=1, help="Launches of each, in turns.")]
Publish = Annotated[Optional[Path], typer.Option(help="Write it there as docs/figures/results has it.")]


def conditions(meta: Mapping, *more: str) -> str:
    """Of a result, as docs/figures/results has them."""
    busy = (meta.get("machine_load") or {}).get("busy")
    said = "{nodes} nodes, {rate}, ranks on each: {ppn}, medians of {runs} runs in turns".format_map(meta)
    return "; ".join([said, *more, *(["the machine was busy"] if busy else [])])


def as_program(command: Callable) -> NoReturn:
    """A tool that measures; its result says whether the machine was busy. A mistake is one line."""
    app = typer.Typer(add_completion=False)
    app.command()(machine_load.watched(command))
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except UserError as error:
        console.fail(str(error))
        sys.exit(error.exit_code)
