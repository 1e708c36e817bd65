# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the reference, as Markdown, each from the code that it describes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import header
import messages
import programs
from offpath.base import config
from offpath.cli.commands import app
from offpath.reference import man
from offpath.reference.model import Command, Option, command_line
from offpath.reference.prose import blocks, sentence
from offpath.telemetry import prometheus
from sources import ROOT, files


def reference() -> dict[str, str]:
    """By path below docs/, in the order in which they are to be listed."""
    root = command_line(app)
    found = {"reference/offpath.md": overview(root)}
    for command in root.commands:
        found[f"reference/offpath-{command.path[-1]}.md"] = command_page(command)
    found |= {
        "reference/programs.md": programs_page(),
        "reference/variables.md": variables_page(),
        "reference/exit-status.md": exit_page(),
        "reference/metrics.md": metrics_page(),
        "reference/messages.md": messages_page(),
    }
    for file in sorted((ROOT / "include" / "offpath").glob("*.h")):
        found[header_path(file.stem)] = header_page(file)
    return found


def header_path(stem: str) -> str:
    return "reference/c-api.md" if stem == "offpath" else f"reference/c-api-{stem}.md"


def glossary() -> str:
    """The words of docs/architecture.md, by the alphabet."""
    words = re.search(r"## Words\n\n.*?\n\n", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL)[0]
    rows = [line.split("|")[1:3] for line in words.split("\n") if line.startswith("|")][2:]
    lines = [
        "# Glossary",
        "",
        "How the documents and the sources use these words.",
        "",
        "| word | meaning |",
        "|---|---|",
    ]
    for word, meaning in sorted(rows, key=lambda row: row[0].replace("*", "").strip().lower()):
        lines.append(f"| {word.strip()} | {meaning.strip()} |")
    return "\n".join(lines) + "\n"


def overview(root: Command) -> str:
    lines, part = ["# offpath", "", prose(root.help)], None
    for command in root.commands:
        if command.part != part:
            part = command.part
            lines += ["", f"## {part}", "", "| command | does |", "|---|---|"]
        lines.append(f"| [`{command.name}`](offpath-{command.path[-1]}.md) | {cell(command.summary)} |")
        for each in command.commands:
            link = f"offpath-{command.path[-1]}.md#{anchor(each.name)}"
            lines.append(f"| &nbsp;&nbsp;[`{each.name}`]({link}) | {cell(each.summary)} |")
    return "\n".join([*lines, "", *options(root), ""])


def command_page(command: Command) -> str:
    lines = []
    for each in command.all():
        lines += [
            f"{'#' if each is command else '##'} {each.name}",
            "",
            f"    {each.synopsis}",
            "",
            prose(each.help),
            "",
        ]
        lines += options(each)
    return "\n".join(lines)


def options(command: Command) -> Iterator[str]:
    described = [each for each in (*command.arguments, *command.options) if each.names or each.help]
    if described:
        yield from ("| option | meaning | default |", "|---|---|---|")
    for each in described:
        names = ", ".join(f"`{name}`" for name in each.names)
        value = f"`{each.value}`" if each.value else ""
        yield f"| {cell(f'{names} {value}'.strip(), code=True)} | {cell(_meaning(each))} | {_default(each)} |"
    yield ""


def _meaning(option: Option) -> str:
    return sentence(option.help) + (" May be given several times." if option.repeated and option.names else "")


def _default(option: Option) -> str:
    return f"`{cell(option.default, code=True)}`" if option.default else ""


def programs_page() -> str:
    lines = ["# Other programs", "", "`offpath` starts most of these by itself.", ""]
    for command in programs.native():
        lines += [f"## {command.name}", "", prose(command.help), "", *options(command)]
    for name, text in programs.compilers().items():
        lines += [f"## {name}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def variables_page() -> str:
    readers = _readers()
    lines = [
        "# Variables", "",
        "Each can be set in the environment. `offpath info` shows their values here, and where each is from. Options",
        "of [`offpath run`](offpath-run.md) set many of them for all ranks. A value that its reader does not take is",
        "reported once, and the default is used.", "",
        "| variable | meaning | default | read by |", "|---|---|---|---|",
    ]  # fmt: skip
    for setting in config.SETTINGS:
        default = f"`{cell(setting.default, code=True)}`" if setting.default else ""
        who = ", ".join(sorted(readers.get(setting.name, {"command line"})))
        lines.append(f"| `{setting.name}` | {cell(sentence(setting.help))} | {default} | {who} |")
    lines += [f"| `{config.PASSED_ON_PREFIX}*` | Handed on to the service's UCX. | | service |", ""]
    lines += ["## Set by Offpath itself", "", "Parts of Offpath tell each other by these. Nobody has to set them.", ""]
    lines += ["| variable | meaning |", "|---|---|"]
    lines += [f"| `{each.name}` | {cell(sentence(each.help))} |" for each in config.INTERNAL]
    return "\n".join(lines) + "\n"


READERS = (
    ("frontends/mpi", "MPI library"),
    ("frontends/shmem", "OpenSHMEM library"),
    ("frontends/petsc", "PETSc library"),
    ("frontends/openmp/compiler", "offpath-cc"),
    ("frontends/openmp|src/device|src/executor", "devices"),
    ("frontends|src/client|src/session", "all libraries"),
    ("src", "service"),
    ("bench|apps", "benchmarks"),
    ("python", "command line"),
)


def _readers() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    more = [*(ROOT / "python" / "offpath").rglob("*.py"), *(ROOT / "frontends" / "openmp" / "compiler").glob("*")]
    for file in (*files("src", "frontends", "bench", "apps"), *filter(lambda each: each.is_file(), more)):
        path = str(file.relative_to(ROOT))
        if path == "python/offpath/base/config.py":
            continue
        who = next(title for folder, title in READERS if re.match(folder, path))
        for name in re.findall(r'["\'{(]\s*(OFFPATH_[A-Z_]+[A-Z])["\':=]', file.read_text(errors="replace")):
            found.setdefault(name, set()).add(who)
    return found


def exit_page() -> str:
    lines = ["# Exit status", "", "Of `offpath` and its commands:", "", "| status | meaning |", "|---|---|"]
    lines += [f"| {status} | {cell(sentence(meaning))} |" for status, meaning in man.EXIT_STATUS.items()]
    lines += ["", "`offpathd` ends with 0 when its last client has left, and with 1 where it could not serve.", ""]
    lines += ["What functions of the C API return is listed in [the C API](c-api.md#offpath_status_t).", ""]
    return "\n".join(lines)


def metrics_page() -> str:
    lines = [
        "# Metrics", "",
        "What `offpath run --metrics` gives to Prometheus; [the guide](../guide-telemetry.md) says how. All names",
        "begin with `offpath_`. Times are in seconds.", "",
        "## While the program runs", "", "| metric | kind | meaning |", "|---|---|---|",
    ]  # fmt: skip
    for names in (prometheus.LIVE_RANK, prometheus.LIVE_WORKER):
        lines += [f"| `offpath_{metric}` | {kind} | {cell(text)} |" for metric, kind, _, text in names.values()]
    lines += ["", "## At its end", ""]
    lines += [
        "The second column is the name in a rank's line of OFFPATH_STATS_FILE, where times are in nanoseconds.",
        "",
    ]
    lines += ["| metric | name in the line | meaning |", "|---|---|---|"]
    for name, (metric, _, text) in prometheus.NAMES.items():
        lines.append(f"| `offpath_{metric}` | `{name}` | {cell(text)} |")
    return "\n".join(lines) + "\n"


def messages_page() -> str:
    found = messages.all_messages()
    lines = [
        "# Messages", "",
        f"All {len(found)} messages that are about something wrong, from the sources, by area. `{messages.GAP}` stands",
        "for what differs: a name, a number, a reason. A reason is a message of its own: look for it, too. Where a",
        "message does not say what to do, the line below the area's title does. The most frequent ones are explained",
        "in [troubleshooting](../troubleshooting.md).", "",
    ]  # fmt: skip
    areas = {title: cure for _, title, cure in messages.AREAS}
    for title, cure in areas.items():
        rows = [each for each in found if each.area[0] == title]
        if not rows:
            continue
        lines += [f"## {title}", "", cure, "", "| message | why it matters | what to do |", "|---|---|---|"]
        for each in rows:
            lines.append(f"| {cell(each.problem)} | {cell(each.why)} | {cell(sentence(each.cure))} |")
        lines.append("")
    return "\n".join(lines)


def header_page(file) -> str:
    read = header.read(file)
    where = f"offpath/{file.name}"
    lines = [f"# C API: {where}" if file.stem != "offpath" else "# C API", "", f"`#include <{where}>`", ""]
    lines += ["```text", read.about, "```", ""]
    for section in read.sections:
        lines += [f"## {section.title}", ""]
        lines += _comment(section.about)
        for each in section.declarations:
            if each.names:
                lines += [f"### {', '.join(f'`{name}`' for name in each.names)} {{ #{each.names[0].lower()} }}", ""]
            lines += [*_comment(each.comment), "```c", each.code, "```", ""]
    return "\n".join(lines)


def _comment(text: str) -> list[str]:
    """Its paragraphs as text; the lines from the first one on that begins with a label (Params, Order) as they are."""
    label = re.search(r"^[ ]*[A-Z][a-z]+ {2,}\S", text, re.MULTILINE)
    about, rest = (text[: label.start()], text[label.start() :].strip()) if label else (text, "")
    lines = []
    for paragraph in filter(str.strip, re.split(r"\n[ ]*\n", about)):
        lines += [literal(" ".join(paragraph.split())), ""]
    return [*lines, *(["```text", rest, "```", ""] if rest else [])]


def prose(text: str) -> str:
    parts = []
    for block in blocks(text):
        if block.kind == "code":
            parts.append("\n".join(f"    {line}" for line in block.text.split("\n")))
        else:
            parts.append(("- " if block.kind == "item" else "") + literal(block.text))
    return "\n\n".join(parts)


def cell(text: str, code: bool = False) -> str:
    text = " ".join(text.split())
    return text if code else re.sub(r"\|(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\|", literal(text))


def literal(text: str) -> str:
    """What Markdown would take for itself, outside of `code`."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # not in pairs
        parts = [text.replace("`", "\\`")]
    parts[::2] = [re.sub(r"([*<\[\]]|(?<!\w)_|_(?!\w))", r"\\\1", part).replace("\\<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", title.lower())
