# SPDX-License-Identifier: BSD-3-Clause
"""The Python interface's numbers and structs are those of include/offpath/offpath.h."""

import ctypes
import re
import subprocess
import sys

import pytest
from conftest import ROOT, captured
from offpath.api import constants, failures, structs

HEADER = ROOT / "include" / "offpath" / "offpath.h"
ENUMS = {
    "status": (constants.Status, ""),
    "loss": (constants.Loss, "LOSS_"),
    "collective_kind": (constants.Kind, ""),
    "algorithm": (constants.Algorithm, "ALGORITHM_"),
    "operator": (constants.Operator, "OP_"),
    "element": (constants.Element, "ELEMENT_"),
    "remote_kind": (constants.Remote, ""),
}


def values(name):
    command = ["gcc", "-E", "-P", f"-I{ROOT}/include", HEADER]
    text = captured(command, check=True).stdout
    body = re.search(rf"typedef enum offpath_{name} {{(.*?)}} offpath_{name}_t", text, re.DOTALL)[1]
    return {key: int(value) for key, value in re.findall(r"OFFPATH_(\w+) = (-?\d+)", body)}


@pytest.mark.parametrize("name", ENUMS)
def test_numbers_are_the_headers(name):
    enum, prefix = ENUMS[name]
    assert {prefix + member.name: member.value for member in enum} == values(name)


def struct_name(name):
    """AttachParams is offpath_attach_params_t."""
    return f"offpath{re.sub('(?=[A-Z])', '_', name).lower()}_t"


def test_structs_are_laid_out_as_in_c(tmp_path):
    in_the_header = {
        struct_name(name): each
        for name, each in vars(structs).items()
        if isinstance(each, type) and issubclass(each, ctypes.Structure)
    }
    assert len(in_the_header) > 10
    lines = ["#include <offpath/offpath.h>", "#include <stdio.h>", "int main(void) {"]
    expected = []
    for name, struct in in_the_header.items():
        lines.append(f'printf("%zu", sizeof({name}));')
        for field, *_ in struct._fields_:
            lines.append(f'printf(" %zu", __builtin_offsetof({name}, {field}));')
        lines.append('puts("");')
        sizes = [struct.__dict__[field].offset for field, *_ in struct._fields_]
        expected.append(" ".join(map(str, [ctypes.sizeof(struct), *sizes])))
    (tmp_path / "sizes.c").write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(["gcc", f"-I{ROOT}/include", tmp_path / "sizes.c", "-o", tmp_path / "sizes"], check=True)
    printed = captured([tmp_path / "sizes"], check=True).stdout.splitlines()
    assert dict(zip(in_the_header, printed)) == dict(zip(in_the_header, expected))


def test_every_error_is_an_exception():
    errors = {status for status in constants.Status if status < 0}
    assert errors - set(failures._CLASSES) == {constants.Status.ERR_INTERNAL}  # whose class is that of all


def test_importing_costs_nothing():
    """The command line and programs that only ask for the version load no NumPy, and nothing of the interface."""
    code = "import sys, offpath, offpath.cli.commands; assert offpath.__version__; print(*sys.modules)"
    loaded = captured([sys.executable, "-c", code], check=True)
    modules = loaded.stdout.split()
    assert "numpy" not in modules and not [name for name in modules if name.startswith("offpath.api")]


def test_what_is_offered_is_there():
    import offpath

    for name in offpath.__all__:
        assert getattr(offpath, name) is not None and name in dir(offpath)
    with pytest.raises(AttributeError):
        offpath.nothing_of_ours  # noqa: B018
