# SPDX-License-Identifier: BSD-3-Clause
"""Every message that a user can see, from the sources. Each reads "problem (why it matters). What to do"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sources import GAP, ROOT, Literal, files, literals

REPORT = "Please report this"
# Where messages come from, its title, and what to do about a message that does not say it. The first that fits.
AREAS = (
    ("frontends/mpi", "MPI programs", "The program goes on with native MPI. OFFPATH_LOG=debug says more."),
    ("frontends/shmem", "OpenSHMEM programs", "See [OpenSHMEM programs](../guide-openshmem.md)."),
    ("frontends/petsc", "PETSc solvers", "See [PETSc](../guide-petsc.md)."),
    (
        "frontends/openmp|src/executor|src/device",
        "OpenMP target regions and devices",
        "`offpath devices` says what a program sees. See [OpenMP target regions](../guide-openmp.md).",
    ),
    ("src/policy", "Rows of the policy", "`offpath info --policy` shows which rows hold."),
    (
        "src/agent",
        "DPUs that are other machines",
        "`offpath dpus check` asks each DPU. See [DPUs](../guide-dpu.md).",
    ),
    (
        "src/fabric|src/multicast",
        "The network between services",
        "Compare OFFPATH_FABRIC, OFFPATH_FABRIC_SECURITY and OFFPATH_UCX_NET_DEVICES of the nodes.",
    ),
    (
        "src/client|src/service|src/session|src/memory|src/base|src/watch|frontends/attach",
        "The service, and how a process attaches to it",
        "OFFPATH_SERVICE_LOG=FILE keeps what the service says.",
    ),
    (
        "src/engine|src/wire|src/graph",
        "What services say to each other",
        f"All nodes need the same release. If they have it: {REPORT.lower()}, with OFFPATH_SERVICE_LOG=FILE.",
    ),
    (
        "src/collective|src/remote|src/ops|src/kernels",
        "Arguments of the C API",
        f"A caller of [the C API](c-api.md) gave what it does not take. From an MPI program: {REPORT.lower()}.",
    ),
    (
        "src/tasks|frontends/python|python/offpath/(api|tasks|torch)",
        "Tasks and the Python interface",
        "See the guides.",
    ),
    ("src/model", "The planner's model", f"Requests come from `offpath plan`. {REPORT}."),
    ("python/offpath/lab", "Command line: the lab", "See [the lab](../guide-lab.md)."),
    (
        "python/offpath/(plan|trace/(profile|sites|messages))",
        "Command line: profile and plan",
        "See [the planner](../guide-planner.md).",
    ),
    (
        "python/offpath/(telemetry|trace)",
        "Command line: traces, top and metrics",
        "See [telemetry](../guide-telemetry.md).",
    ),
    (
        "python/offpath/(split|bench/(krylov|matrix))",
        "Command line: Krylov solvers",
        "See [Krylov solvers](../guide-krylov.md).",
    ),
    ("python/offpath/dpu", "Command line: devices and DPUs", "See [DPUs](../guide-dpu.md)."),
    (
        "python/offpath/(bench|places)",
        "Command line: benchmarks, demo, tune",
        "See the command's `--help`.",
    ),
    ("python", "Command line: everything else", "See the command's `--help`."),
    ("", "Others", f"{REPORT}."),
)

# Calls whose strings no user reads as a message.
SILENT = re.compile(
    r"(add_(option|flag)\w*|app|static_assert|s?scanf|printf|Petsc(Info|Options\w*|ViewerASCIIPrintf)|write_header|append"
    r"|command|add|define|text|refused|ucx_error)$"
)
SAYS_TWO_THINGS = {"bad_row"}  # calls of problem and cure
WHOLE = {("src/model", "bad"): f"{GAP} is not usable (needed: {{}}). Correct the request"}  # of what is a part of it
STRUCTURE = re.compile(
    r"^(?P<problem>.*?)(?: \((?P<why>[^()]*(?:\([^()]*\)[^()]*)*)\))?\. (?P<cure>(?=[A-Z`\"'])?.+)$", re.DOTALL
)
FORMAT = re.compile(r"%[-+ #0]*\d*(?:\.\d+|\.\*)?(?:ll|l|z|h|j|t)*[diouxXeEfgGcsp]")


@dataclass(frozen=True)
class Message:
    text: str
    problem: str
    why: str
    cure: str
    level: str  # error, warn, info, debug
    file: str

    @property
    def area(self) -> tuple[str, str]:
        return next((title, cure) for prefix, title, cure in AREAS if re.match(prefix, self.file))


def all_messages() -> list[Message]:
    """Sorted by text; the same text from several places is there once per area."""
    found: dict[tuple[str, str], Message] = {}
    for message in (*_native(), *_python()):
        found.setdefault((message.area[0], message.text), message)
    return sorted(found.values(), key=lambda message: message.text.lower().lstrip(f"'\"{GAP} "))


def parse(text: str, level: str, file: Path) -> Message:
    text = re.sub(rf"{GAP}(\s*{GAP})+", GAP, " ".join(text.split())).strip()
    text = re.sub(r"^offpath (warn|error): ", "", text)
    match = STRUCTURE.match(text)
    name = str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else file.name
    if not match:
        why = re.match(r"^(.*?) \(([^()]*)\)\.?$", text)
        return Message(text, why[1] if why else text, why[2] if why else "", "", level, name)
    problem, why, cure = match["problem"], match["why"] or "", match["cure"]
    if problem == GAP and why:  # what it says of itself is all that is known of it
        problem, why = f"{GAP} ({why})", ""
    return Message(text, problem, why, "" if cure.strip(f"{GAP}. ") == "" else cure, level, name)


def _native() -> Iterator[Message]:
    for file in files("src", "frontends"):
        before: Literal | None = None
        for each in literals(file):
            together = before is not None and each.call is before.call and each.call.name in SAYS_TWO_THINGS
            if before is not None and not together:
                yield from _of_literal(before.text, before)
            if together:
                yield from _of_literal(f"policy row '{GAP}' {before.text}. {each.text}", before)
            before = None if together else each
        if before is not None:
            yield from _of_literal(before.text, before)


def _of_literal(text: str, literal: Literal) -> Iterator[Message]:
    name = literal.call.name.split("::")[-1].split(".")[-1].split("->")[-1]
    words = [word for word in FORMAT.sub("", text).split() if re.search(r"[A-Za-z]{2}", word)]
    if len(words) < 4 or SILENT.match(name) or text.lstrip().startswith(('"', "{", ",")):
        return
    level = next((word.split("::")[-1] for word in literal.words if "LogLevel::" in word), "error")
    if level in ("info", "debug"):
        return  # nothing is wrong
    for (folder, call), whole in WHOLE.items():
        if call == name and str(literal.file.relative_to(ROOT)).startswith(folder):
            text = whole.format(text)
    yield parse(FORMAT.sub(GAP, text), level, literal.file)


CALLS = {"UserError": "error", "BadParameter": "error", "fail": "error", "BadArgumentUsage": "error"}


def _python() -> Iterator[Message]:
    for file in sorted((ROOT / "python" / "offpath").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and node.args:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                text = _text(node.args[0]) if name in CALLS else ""
                if len(text.replace(GAP, "").split()) >= 3:
                    yield parse(text, CALLS[name], file)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return GAP
