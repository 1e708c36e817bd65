# SPDX-License-Identifier: BSD-3-Clause
"""What Python 3.9 could not run: vermin (tools/lint) sees syntax and library, and here is what it cannot see."""

import ast
import inspect
import os
import re
import subprocess
import sys
import typing

import pytest
import typer
from conftest import LIMIT_S, ROOT, assert_one_line_error, captured
from offpath.base import oldest
from offpath.cli.commands import app


def commands(group, names=()):
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*names, name))
        else:
            yield pytest.param(command.callback, id=" ".join((*names, name)))


@pytest.mark.parametrize("function", list(commands(typer.main.get_command(app))))
def test_what_typer_evaluates_has_no_new_unions(function):
    """Typer evaluates annotations when a command is started: `X | None` ends there in a TypeError."""
    for annotation in inspect.get_annotations(inspect.unwrap(function)).values():
        if isinstance(annotation, str):  # a module with `from __future__ import annotations`
            assert " | " not in annotation.split("typer.")[0], annotation
        else:
            kinds = typing.get_args(annotation)[:1]
            assert not any(type(kind).__name__ == "UnionType" for kind in kinds), annotation


def unions(tree: ast.AST) -> list[int]:
    """Lines of annotations with `X | Y`: evaluated, unless a module has `from __future__ import annotations`."""
    found = []
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if part is not None:
                found += [each.lineno for each in ast.walk(part) if isinstance(getattr(each, "op", None), ast.BitOr)]
    return found


def test_annotations_that_are_evaluated_have_no_new_unions():
    assert unions(ast.parse("def f(a: list[int] | None = None) -> int | str: pass")) == [1, 1]
    late = "from __future__ import annotations"
    texts = {file: file.read_text() for file in (ROOT / "python" / "offpath").rglob("*.py")}
    wrong = {file: unions(ast.parse(text)) for file, text in texts.items() if late not in text}
    assert not {file: lines for file, lines in wrong.items() if lines}


@pytest.fixture(scope="module")
def oldest_typer(tmp_path_factory):
    """The folder of the oldest typer that the wheel allows, with what pip takes for it today."""
    files = [(ROOT / "python" / name).read_text() for name in ("pyproject.toml", "requirements.txt")]
    [version] = {version for text in files for version in re.findall(r"typer>=([\d.]+)", text)}
    folder = tmp_path_factory.mktemp("typer")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, f"typer=={version}", "rich"]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    return folder


@pytest.mark.parametrize(
    "words, answer",
    [
        (["run", "--bogus"], "--bogus"),
        (["bench", "worker", "--sizes", "many"], "'many' is not a size"),
        (["bench", "worker", "--sizes"], "requires an argument"),
    ],
)
def test_the_oldest_typer_that_is_allowed(oldest_typer, words, answer):
    path = os.pathsep.join([str(oldest_typer), str(ROOT / "python")])
    command = [sys.executable, "-m", "offpath", *words]
    done = captured(command, env={**os.environ, "PYTHONPATH": path})
    assert_one_line_error(done, answer)


def test_only_what_every_typer_has_is_imported():
    """typer.exceptions, say, is in few versions; Python 3.9 gets one without it."""
    imported = set()
    for file in (ROOT / "python" / "offpath").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            imported.update([node.module or ""] if isinstance(node, ast.ImportFrom) else names)
    assert {name for name in imported if name.split(".")[0] == "typer"} == {"typer", "typer.core"}


def test_words_are_their_values():
    class Way(oldest.StrEnum):
        there = "over there"

    assert f"{Way.there}" == str(Way.there) == Way.there == Way("over there") == "over there"


def test_series_of_the_same_length():
    assert list(oldest.zip_equal("ab", [1, 2])) == [("a", 1), ("b", 2)] and list(oldest.zip_equal()) == []
    for left, right in (("a", ""), ("", "a")):
        with pytest.raises(ValueError):
            list(oldest.zip_equal(left, right))
