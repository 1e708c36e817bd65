# SPDX-License-Identifier: BSD-3-Clause
"""Modules of the command line import each other in one direction."""

import ast
from graphlib import CycleError, TopologicalSorter

import pytest
from conftest import ROOT

PACKAGES = ROOT / "python"


def module_of(file):
    parts = file.relative_to(PACKAGES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(text, modules):
    """The modules that one imports anywhere: also in a function, or only for a type checker."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are by full names"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else node.module for name in inner]
        else:
            continue
        found.update(name for name in names if name in modules)
    return found


def order(texts):
    """Raises CycleError. Whoever imports a module of a package does not need what the package's __init__ does."""
    return list(TopologicalSorter({name: imports_of(text, texts) for name, text in texts.items()}).static_order())


def test_our_modules_stand_on_each_other_in_one_direction():
    texts = {module_of(file): file.read_text() for file in (PACKAGES / "offpath").rglob("*.py")}
    assert len(texts) > 50
    assert order(texts)[-1:]


@pytest.mark.parametrize("hidden", ["import a", "def f():\n    import a", "if TYPE_CHECKING:\n    from a import x"])
def test_circle_is_found(hidden):
    assert order({"a": "from b import y", "b": "import c", "c": ""}) == ["c", "b", "a"]
    with pytest.raises(CycleError):
        order({"a": "from b import y", "b": "import c", "c": hidden})
