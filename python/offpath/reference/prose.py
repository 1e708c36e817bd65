# SPDX-License-Identifier: BSD-3-Clause
"""Help texts as blocks: paragraphs, code, lists. They are written in the little of Markdown that typer shows."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    kind: str  # text, code, item
    text: str


def blocks(text: str) -> list[Block]:
    found = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        lines = part.split("\n")
        if all(line.startswith("    ") for line in lines):
            code = "\n".join(line[4:] for line in lines)
            if found and found[-1].kind == "code":
                code = found.pop().text + "\n" + code
            found.append(Block("code", code))
        elif lines[0].startswith(("- ", "* ")):
            for item in re.split(r"\n[-*] ", part[2:]):
                found.append(Block("item", " ".join(item.split())))
        elif part.strip():
            found.append(Block("text", " ".join(part.split())))
    return found


def sentence(text: str) -> str:
    """With a full stop."""
    text = " ".join(text.split())
    return text if not text or text.endswith((".", "!", "?", ":")) else text + "."
