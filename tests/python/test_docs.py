# SPDX-License-Identifier: BSD-3-Clause
"""Commands in the documents: each is known to the command line or the Makefile; those of the lab's guide are run."""

import re
import shlex
import subprocess
import uuid
from pathlib import Path

import pytest
import typer
from conftest import ROOT, offpath, requires_root
from offpath.cli import app

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(document: Path, start: str) -> list[list[str]]:
    lines = re.findall(rf"^    ({re.escape(start)} .*)$", document.read_text(), re.MULTILINE)
    return [shlex.split(line.split("  #")[0].replace("...", "./my_mpi_program")) for line in lines]


def documented(start: str) -> list:
    found = {shlex.join(words): words for document in DOCUMENTS for words in commands(document, start)}
    return [pytest.param(words, id=text) for text, words in found.items()]


@pytest.mark.parametrize("words", documented("make"))
def test_make_targets_exist(words):
    result = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("words", documented("./offpath"))
def test_options_are_understood(words):
    command, arguments = typer.main.get_command(app), words[1:]
    while hasattr(command, "get_command"):
        name = arguments.pop(0)
        context = command.make_context(name, [], resilient_parsing=True)
        command = command.get_command(context, name)
        assert command is not None, f"there is no command {name}"
    command.make_context(command.name, arguments)  # raises on anything it does not know


@requires_root
def test_the_lab_guide_runs(programs):
    """In its order, with a lab of our own and a real program."""
    name = f"t{uuid.uuid4().hex[:6]}"
    try:
        for words in commands(ROOT / "docs" / "guide-lab.md", "./offpath"):
            mpi = words[words.index("--mpi") + 1] if "--mpi" in words else None
            words = [str(programs / f"hello_{mpi}") if word == "./my_mpi_program" else word for word in words[1:]]
            position = 2
            named = (
                words[:position] + ([name] if words[1] in ("down", "status") else ["--name", name]) + words[position:]
            )
            result = offpath(*named)
            assert result.returncode == 0, (named, result.stderr)
    finally:
        offpath("lab", "down", name)
