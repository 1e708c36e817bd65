# SPDX-License-Identifier: BSD-3-Clause
"""Commands in the documents: each is known to the command line or the Makefile; those of the lab's guide are run."""

import re
import shlex
import subprocess
import uuid
from pathlib import Path

import pytest
import typer
from conftest import ROOT, captured, offpath, requires_root, succeeded
from offpath.cli.commands import app

PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "performance").glob("*.md")])
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]


def commands(document: Path, start: str) -> list[list[str]]:
    lines = re.findall(rf"^    ({re.escape(start)} .*)$", document.read_text(), re.MULTILINE)
    return [shlex.split(line.split("  #")[0].replace("...", "./my_mpi_program")) for line in lines]


def documented(start: str) -> list:
    found = {shlex.join(words): words for document in DOCUMENTS for words in commands(document, start)}
    return [pytest.param(words, id=text) for text, words in found.items()]


@pytest.mark.parametrize("words", documented("make"))
def test_make_targets_exist(words):
    succeeded(captured(["make", "-n", *words[1:]], cwd=ROOT))


@pytest.mark.parametrize("words", documented("./offpath") + documented("offpath"))
def test_options_are_understood(words):
    command, arguments = typer.main.get_command(app), words[1:]
    while hasattr(command, "get_command"):
        name = arguments.pop(0)
        context = command.make_context(name, [], resilient_parsing=True)
        command = command.get_command(context, name)
        assert command is not None, f"there is no command {name}"
    command.make_context(command.name, arguments)  # raises on anything it does not know


def of_lab(words: list[str], name: str) -> list[str]:
    """A lab command of a document, for a lab of our own."""
    return words[:2] + ([name] if words[1] in ("down", "status") else ["--name", name]) + words[2:]


LAB_GUIDE = commands(ROOT / "docs" / "guide-lab.md", "./offpath")
MACHINES_FROM = next(i for i, words in enumerate(LAB_GUIDE) if "--rdma" in words)  # what is left is about them


@requires_root
@pytest.mark.parametrize(
    "part", [LAB_GUIDE[:MACHINES_FROM], pytest.param(LAB_GUIDE[MACHINES_FROM:], marks=pytest.mark.nightly)],
    ids=["nodes", "machines"],
)  # fmt: skip
def test_the_lab_guide_runs(part, programs):
    """In its order, with a lab of our own and a real program."""
    name = f"t{uuid.uuid4().hex[:6]}"
    if "--rdma" in part[0] and not (ROOT / ".machines" / "ready").exists():
        pytest.skip("needs what tools/setup-machines makes")
    try:
        for words in part:
            if words[1] == "bench":  # takes its time, and has tests of its own
                continue
            mpi = words[words.index("--mpi") + 1] if "--mpi" in words else None
            words = [str(programs / f"hello_{mpi}") if word == "./my_mpi_program" else word for word in words[1:]]
            result = offpath(*of_lab(words, name))
            assert result.returncode == 0, (words, result.stderr)
    finally:
        offpath("lab", "down", name)


@requires_root
def test_the_first_ten_minutes_are_as_shown(tmp_path):
    """The commands of guide-start.md in their order, and the lines that it says they print."""
    guide = ROOT / "docs" / "guide-start.md"
    program = tmp_path / "my_mpi_program"
    names = {"./my_mpi_program": str(program), "my_mpi_program": str(program)}
    for words in commands(guide, "mpicc.mpich"):
        subprocess.run([names.get(word, word) for word in words], cwd=ROOT, check=True)
    name, printed = f"t{uuid.uuid4().hex[:6]}", ""
    root = {"OFFPATH_PREFIX": str(ROOT / "build" / "release")}
    try:
        for words in commands(guide, "./offpath"):
            words = [names.get(word, word) for word in words[1:]]
            result = offpath(*(of_lab(words, name) if words[0] == "lab" else words), env=root)
            assert result.returncode == 0, (words, result.stderr)
            printed += result.stdout + result.stderr
    finally:
        offpath("lab", "down", name)
    shown = " ".join("".join(re.findall(r"```\n(.*?)```", guide.read_text(), re.DOTALL)).split())
    printed = " ".join(printed.split())
    for sentence in re.findall(r"offpath: .*?\.(?= )", shown):
        assert sentence in printed, printed
    assert "20 operations on the DPU, 0 on the host. Per rank," in printed


def test_steps_to_a_dpu_are_counted_alike():
    """The guide has as many as its comparison says, and each row as many as it names."""
    guide = (ROOT / "docs" / "guide-dpu.md").read_text()
    counted = re.findall(r"^\| ([\w -]+) \| (\d+)[^|]*\| ([^|]*;[^|]*) \|$", guide, re.MULTILINE)
    assert [name for name, _, _ in counted] == ["Offpath", "MVAPICH2-DPU", "UCC with DOCA UROM"]
    for _, number, parts in counted:
        assert len(parts.split(";")) == int(number)
    numbers = re.findall(r"^\*\*(\d+)\. ", guide, re.MULTILINE)
    assert numbers == [str(number) for number in range(1, int(counted[0][1]) + 1)]
    assert all({"an allocation", "a hostfile"} <= {part.strip() for part in parts.split(";")} for *_, parts in counted)
