# SPDX-License-Identifier: BSD-3-Clause
"""What docs/stability.md promises of the C API, as a list that a change has to change: exported symbols, numbers of the
header, layouts of its structs. OFFPATH_TEST_ACCEPT=1 writes the list anew; read stability.md before."""

import os
import re
import subprocess

from conftest import ROOT, captured, require
from offpath.base.paths import paths

LIST = ROOT / "tests" / "packaging" / "abi.txt"
HEADERS = [ROOT / "include" / "offpath" / name for name in ("offpath.h", "task.h")]
FIELD = re.compile(r"(\w+)(?:\[\w+\])*\s*(?:,|$)")


def plain(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def structs(text):
    """Name and fields of each struct whose fields are public."""
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", plain(text), re.DOTALL):
        fields = [name for line in body.split(";") for name in FIELD.findall(line.strip())]
        yield name, fields


def enumerators(text):
    for body in re.findall(r"enum \w+ \{(.*?)\}", plain(text), re.DOTALL):
        yield from re.findall(r"\b(OFFPATH_\w+)\b", body)


def preprocessed(file):
    """With the tables that it includes."""
    command = ["gcc", "-E", "-P", f"-I{ROOT}/include", file]
    return captured(command, check=True).stdout


def described(folder):
    """Lines that a C compiler says of the headers, and a linker of the library."""
    lines = ["#include <stdio.h>", *(f'#include "{file}"' for file in HEADERS), "int main(void) {"]
    for text in map(preprocessed, HEADERS):
        for name in dict.fromkeys(enumerators(text)):
            lines.append(f'printf("number {name} %lld\\n", (long long){name});')
        for name, fields in structs(text):
            lines.append(f'printf("struct {name} %zu\\n", sizeof({name}));')
            for field in fields:
                lines.append(
                    f'printf("field {name}.{field} %zu %zu\\n", __builtin_offsetof({name}, {field}), '
                    f"sizeof((({name}*)0)->{field}));"
                )
    source, program = folder / "abi.c", folder / "abi"
    source.write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(["gcc", f"-I{ROOT}/include", source, "-o", program], check=True)
    said = captured([program], check=True).stdout.splitlines()
    nm = ["nm", "-D", "--defined-only", "--format=posix", paths().lib / "liboffpath.so"]
    symbols = captured(nm, check=True).stdout
    exported = [f"symbol {line.split()[0]}" for line in symbols.splitlines() if " A " not in line]
    return sorted(set(said + exported))


def test_the_c_api_is_that_of_the_list(tmp_path):
    """What is new is added to the list. What is gone or different is a new major version: see docs/stability.md."""
    require(paths().lib / "liboffpath.so")
    found = described(tmp_path)
    assert len([line for line in found if line.startswith("symbol")]) >= 50
    assert len([line for line in found if line.startswith("struct")]) >= 8
    if os.environ.get("OFFPATH_TEST_ACCEPT"):
        LIST.write_text("\n".join(found) + "\n")
    listed = LIST.read_text().splitlines()
    gone, new = sorted(set(listed) - set(found)), sorted(set(found) - set(listed))
    assert not gone and not new, f"gone or different: {gone}; new: {new}"


def test_the_list_notices_changes():
    text = "typedef struct x { int a; /* of b */ const char* b; uint8_t c[4], d; } x_t;"
    text += "enum y { OFFPATH_P = 1, OFFPATH_Q };"
    assert list(structs(text)) == [("x_t", ["a", "b", "c", "d"])]
    assert list(enumerators(text)) == ["OFFPATH_P", "OFFPATH_Q"]


def commands_and_options():
    from offpath.cli.commands import app
    from offpath.reference import model

    for command in model.command_line(app).all():
        yield " ".join(command.path)
        for option in command.options:
            yield from (f"{' '.join(command.path)} {name}" for name in option.names)


def test_what_is_called_stable_is_there():
    text = (ROOT / "docs" / "stability.md").read_text()
    table = re.search(r"<!-- stable commands -->\n(.*?)<!-- end -->", text, re.DOTALL)[1]
    known = set(commands_and_options())
    named = [name for line in table.splitlines() for name in re.findall(r"`(offpath[^`]*)`", line)]
    assert len(named) >= 15 and not (missing := set(named) - known), missing


def test_variables_that_are_called_stable_are_there():
    from offpath.base.config import SETTINGS

    (row,) = re.findall(r"^\| Variables: (.*?) \|", (ROOT / "docs" / "stability.md").read_text(), re.MULTILINE)
    named = row.split(", ")
    assert len(named) >= 14 and not (missing := set(named) - {setting.name for setting in SETTINGS}), missing


def test_what_is_called_a_format_is_one():
    """Each with the version that the code writes."""
    from offpath.plan import machine
    from offpath.split import description
    from offpath.trace import profile, record

    text = (ROOT / "docs" / "stability.md").read_text()
    for module in (machine, profile, record, description):
        assert re.search(rf"\| `{module.FORMAT}` \| {module.VERSION} \|", text), module.FORMAT


def exists(*names):
    return all((ROOT / name).exists() for name in names)


def test_our_column_of_the_comparison_is_true():
    """Each row that names something of ours, by what it is made of. A row without evidence here fails."""
    from offpath.cli.commands import app
    from offpath.reference import completion, man, model

    root, known = model.command_line(app), set(commands_and_options())
    commands = {name for name in known if " -" not in name}
    pages = man.pages(root, "0", {})
    compatible = (ROOT / "docs" / "compatibility.md").read_text()
    evidence = {
        "what it is": lambda: "offpath run" in commands,
        "installation": lambda: exists("packaging/debian/control", "packaging/spack/package.py", "tools/wheel",
                                       "packaging/apptainer/offpath.def", "packaging/modulefiles/offpath.lua")
        and list((ROOT / "packaging" / "easybuild").glob("*.eb")),
        "changes to programs": lambda: exists("tests/python/programs/checked.c"),  # run by test_slurm.py, test_run.py
        "launchers": lambda: all(word in compatible for word in ("mpirun", "srun", "sbatch"))
        and "torchrun" in (ROOT / "docs" / "guide-torch.md").read_text(),
        "tuning on the user's cluster": lambda: {"offpath tune --launch", "offpath calibrate --launch"} <= known,
        "says beforehand what it brings": lambda: "offpath plan" in commands,
        "documents": lambda: exists("tools/docs/mkdocs.yml", "docs/troubleshooting.md", "docs/job-scripts.md"),
        "man pages": lambda: {name.replace(" ", "-") + ".1" for name in commands if name.count(" ") <= 1} <= set(pages),
        "shell completion": lambda: "--policy" in completion.bash(root) and "--policy" in completion.zsh(root),
        "traces": lambda: {"offpath run --trace", "offpath run --trace-sample"} <= known,
        "metrics while it runs": lambda: {"offpath run --metrics", "offpath top"} <= known,
        "notebooks and data frames": lambda: exists("docs/notebooks/trace.ipynb", "python/offpath/telemetry/frames.py"),
        "bindings": lambda: exists("include/offpath/offpath.h", "include/offpath/offpath.hpp", "python/offpath/api"),
        "statement of stability": lambda: exists("docs/stability.md") and LIST.exists(),
        "real DPUs and RDMA": lambda: "What has never run on real hardware" in (ROOT / "README.md").read_text(),
        "MPI calls offloaded": lambda: "nonblocking" in (ROOT / "docs" / "guide-mpi.md").read_text(),
    }  # fmt: skip
    table = (ROOT / "docs" / "comparison.md").read_text().split("## Sources")[0]
    rows = re.findall(r"^\| (\w[^|]*) \|.*\|$", table, re.MULTILINE)
    assert set(rows) == set(evidence), set(rows) ^ set(evidence)
    assert not (untrue := [row for row, holds in evidence.items() if not holds()]), untrue
