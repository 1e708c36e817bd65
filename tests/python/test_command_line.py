# SPDX-License-Identifier: BSD-3-Clause
"""How the command line is put together: what help shows first, and what is imported for what."""

import json
import re
import sys

import pytest
from conftest import captured, offpath
from offpath.base import commands
from offpath.bench.commands import Benchmarks
from offpath.cli.commands import Commands, app
from offpath.reference import model


def shown():
    return {command.path[-1]: command for command in model.command_line(app).commands}


def test_five_commands_are_in_front():
    first = [name for name, command in shown().items() if command.part == commands.FIRST]
    assert first == ["run", "plan", "tune", "report", "lab"] == list(shown())[:5]


def test_every_command_is_in_a_part_of_the_help_and_says_what_it_does():
    parts = {commands.FIRST, commands.MEASURE, commands.LOOK, commands.PREPARE}
    assert {command.part for command in shown().values()} == parts
    for command in model.command_line(app).all():
        assert command.summary, command.name


def test_parts_are_headings_in_this_order():
    text = offpath("--help").stdout
    found = [text.index(part) for part in (commands.FIRST, commands.MEASURE, commands.LOOK, commands.PREPARE)]
    assert found == sorted(found)


@pytest.mark.parametrize("words, wanted", [(["rnu"], "'run'"), (["bench", "alltoal"], "'alltoall'")])
def test_what_is_nearly_right_is_suggested(words, wanted):
    said = offpath(*words).stderr
    assert f"Did you mean {wanted}" in said and "?." not in said


@pytest.mark.parametrize("words", [["lab"], ["bench"], ["plan"]], ids=" ".join)
def test_a_group_alone_shows_its_help_and_nothing_else(words):
    result = offpath(*words)
    assert result.returncode == 2 and "Usage" in result.stdout + result.stderr and "offpath: ." not in result.stderr


def imported(*words):
    """Of our modules and others, what a command line imports."""
    code = (
        "import json, sys; from offpath.cli.main import main\n"
        f"sys.argv = ['offpath', *{list(words)}]\n"
        "try:\n    main()\nfinally:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = captured([sys.executable, "-c", code], timeout=60)
    return set(json.loads(re.search(r"^\[.*\]$", done.stderr, re.MULTILINE)[0]))


def test_the_version_needs_nothing():
    assert not {"typer", "rich", "numpy"} & imported("--version")


def test_a_program_is_started_without_what_only_shows_things():
    large = {"rich.console", "pydantic", "networkx", "numpy", "prometheus_client", "offpath.telemetry.observation"}
    found = imported("run", "--", "true")
    assert "offpath.run.supervision" in found and not large & found


def test_help_needs_no_graphs():
    found = imported("--help")
    assert "offpath.split.flow" in found and "networkx.algorithms" not in found


@pytest.mark.parametrize("words", [["run", "--help"], ["bench", "wire", "--help"]], ids=" ".join)
def test_a_command_is_imported_when_it_is_used(words):
    found = imported(*words)
    wanted = Commands.modules[words[0]] if words[0] == "run" else Benchmarks.modules[words[1]]
    others = {*Commands.modules.values(), *Benchmarks.modules.values()} - {wanted, "offpath.bench.commands"}
    assert wanted in found and not others & found
