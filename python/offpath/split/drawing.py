# SPDX-License-Identifier: BSD-3-Clause
"""The data-flow graph for Graphviz: sides by colour, exchanges thick, loop-carried values dashed."""

from offpath.split.dominant import DPU, HOST
from offpath.split.flow import flow_graph
from offpath.split.oplist import Kind
from offpath.split.steps import SplitProgram

_FILL = {HOST: "#d5e6f5", DPU: "#f8dfb8"}
_LINE, _EXCHANGED = "#5d6670", "#c0392b"
_SHAPES = {
    Kind.MATVEC: "box", Kind.PRECONDITION: "box", Kind.DOT: "hexagon", Kind.SCALAR: "ellipse", Kind.TEST: "diamond"
}


def dot_text(program: SplitProgram) -> str:
    """A graph in the language of Graphviz; `dot -Tsvg` draws it."""
    oplist = program.oplist
    title = f"{oplist.title or oplist.name}: host blue, DPU orange; red: exchanged; dashed: next iteration"
    lines = [
        "digraph split {",
        f"  label={_quoted(title)};",
        '  labelloc=t; fontname="sans-serif"; rankdir=TB; nodesep=0.3; ranksep=0.35;',
        '  node [style="filled", fontname="monospace", fontsize=11, color="#5d6670"];',
        '  edge [fontname="monospace", fontsize=10];',
    ]
    for index, statement in enumerate(oplist.iteration):
        shape = _SHAPES.get(statement.kind, "box")
        rounded = '"filled,rounded"' if statement.kind == Kind.UPDATE else '"filled"'
        fill = _FILL[program.sides[index]]
        lines.append(
            f'  n{index} [label={_quoted(statement.text)}, shape={shape}, style={rounded}, fillcolor="{fill}"];'
        )
    for writer, reader, edge in sorted(
        flow_graph(oplist).edges(data=True), key=lambda each: (each[:2], each[2]["name"])
    ):
        exchanged = program.sides[writer] != program.sides[reader]
        style = [f'color="{_EXCHANGED if exchanged else _LINE}"', f"label={_quoted(edge['name'])}"]
        if exchanged:
            style += ["penwidth=2.2", f'fontcolor="{_EXCHANGED}"']
        if edge["distance"]:
            style += ["style=dashed", "constraint=false"]
        lines.append(f"  n{writer} -> n{reader} [{', '.join(style)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'
