# SPDX-License-Identifier: BSD-3-Clause
"""Modules import each other in one direction, and packages as python/README.md says."""

import ast
import re
from graphlib import CycleError, TopologicalSorter

import pytest
from conftest import ROOT

PACKAGES = ROOT / "python"
README = (PACKAGES / "README.md").read_text()


def module_of(file):
    parts = file.relative_to(PACKAGES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def texts():
    return {module_of(file): file.read_text() for file in (PACKAGES / "offpath").rglob("*.py")}


def imports_of(text, modules):
    """The modules that one imports anywhere: also in a function, only for a type checker, or later, by its name."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are by full names"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else node.module for name in inner]
        elif isinstance(node, ast.Constant) and "." in str(node.value):
            names = [node.value]
        else:
            continue
        found.update(name for name in names if name in modules)
    return found


def order(texts):
    """Raises CycleError. Whoever imports a module of a package does not need what the package's __init__ does."""
    imports = {name: imports_of(text, texts) - {name} for name, text in texts.items()}  # one may run itself
    return list(TopologicalSorter(imports).static_order())


def package_of(module):
    """offpath.lab.plan is in lab, and offpath.__main__ in offpath."""
    names = module.split(".")
    return names[1] if len(names) > 1 and (PACKAGES / "offpath" / names[1]).is_dir() else names[0]


def packages(texts):
    """What each package imports of others."""
    found = {}
    for module, text in texts.items():
        package = package_of(module)
        found.setdefault(package, set()).update(map(package_of, imports_of(text, texts)))
    return {package: used - {package} for package, used in found.items()}


def rows(text):
    """The table: what each package may import."""
    found = re.findall(r"^\| (\w+) \| .+ \|(.*)\|$", text, re.MULTILINE)
    return {name: set(re.findall(r"\w+", may)) for name, may in found if name != "package"}


def problems(found, allowed):
    """What is not as the table says. Packages that are allowed stand above, so there is no circle."""
    above = set()
    for package, may in allowed.items():
        yield from (f"the row of {package} names {other}, which is not above it" for other in sorted(may - above))
        used = found.get(package, set())
        yield from (f"{package} imports {other}, which its row does not allow" for other in sorted(used - may))
        yield from (f"the row of {package} allows {other}, which it does not import" for other in sorted(may - used))
        above.add(package)
    yield from (f"{package} has no row" for package in sorted(found.keys() - allowed.keys()))
    yield from (f"there is no package {package}" for package in sorted(allowed.keys() - found.keys()))


def test_our_modules_stand_on_each_other_in_one_direction():
    assert len(texts()) > 50
    assert order(texts())[-1:]


def test_our_packages_import_what_the_table_says():
    assert list(problems(packages(texts()), rows(README))) == []


def test_every_module_lies_in_a_package():
    assert {file.name for file in (PACKAGES / "offpath").glob("*.py")} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("hidden", ["import a", "def f():\n    import a", "if TYPE_CHECKING:\n    from a import x"])
def test_circle_is_found(hidden):
    assert order({"a": "from b import y", "b": "import c", "c": ""}) == ["c", "b", "a"]
    with pytest.raises(CycleError):
        order({"a": "from b import y", "b": "import c", "c": hidden})


def test_what_the_table_does_not_say_is_found():
    table = "| package | for | may import |\n|---|---|---|\n| base | this | |\n| lab | that | base |\n"
    assert rows(table) == {"base": set(), "lab": {"base"}}
    modules = {"offpath.base.a": "", "offpath.lab.b": "from offpath.base import a"}
    assert list(problems(packages(modules), rows(table))) == []
    by_name = modules | {"offpath.lab.b": "LATER = {'a': 'offpath.base.a'}"}
    assert list(problems(packages(by_name), rows(table))) == []
    upwards = modules | {"offpath.base.a": "def f():\n    from offpath.lab import b"}
    assert list(problems(packages(upwards), rows(table))) == ["base imports lab, which its row does not allow"]
    circle = rows(table.replace("this | |", "this | lab |"))
    assert list(problems(packages(upwards), circle)) == ["the row of base names lab, which is not above it"]
    found = list(problems({"base": set(), "run": set()}, rows(table)))
    assert found == ["the row of lab allows base, which it does not import", "run has no row",
                     "there is no package lab"]  # fmt: skip
