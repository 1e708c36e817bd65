# SPDX-License-Identifier: BSD-3-Clause
"""A public C header as sections of declarations with their comments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from offpath.base import words

SECTION = re.compile(r"/\* -{3,} (?P<title>.+?) -{3,} \*/")
HIDDEN = re.compile(r"^\s*(#\s*(ifn?def|endif|if|else|include|pragma|define \w+_H$).*|extern \"C\" \{|\})\s*$")
TABLE = re.compile(
    r"#define OFFPATH_(?P<macro>\w+)\([\w, ]+\) (?P<code>.+)\n#include <offpath/words/(?P<name>\w+)\.def>", re.MULTILINE
)


@dataclass
class Declaration:
    names: list[str]
    code: str
    comment: str


@dataclass
class Section:
    title: str
    about: str = ""
    declarations: list[Declaration] = field(default_factory=list)


@dataclass
class Header:
    about: str  # its first comment, without the license
    sections: list[Section]


def read(file: Path) -> Header:
    text = TABLE.sub(_rows, file.read_text())
    first = re.match(r"\s*/\*(.*?)\*/", text, re.DOTALL)
    about = re.sub(r"^.*SPDX[^\n]*\n", "", _stripped(first[1]) if first else "").strip("\n")
    sections = [Section("Status and objects")]
    comment = ""
    for part in re.split(r"(^/\*.*?\*/)", text[first.end() if first else 0 :], flags=re.DOTALL | re.MULTILINE):
        if title := SECTION.fullmatch(part):
            sections.append(Section(title["title"].strip().capitalize()))
            comment = ""
        elif part.startswith("/*"):
            comment = _stripped(part[2:-2]).strip("\n")
        else:
            if comment and re.match(r"[ \t]*\n[ \t]*\n", part):  # a comment that stands by itself
                sections[-1].about, comment = comment, ""
            code = "\n".join(line for line in part.split("\n") if not HIDDEN.match(line)).strip("\n")
            for group in re.split(r"\n\s*\n", code):
                if group.strip():
                    sections[-1].declarations.append(Declaration(_names(group), group, comment))
                    comment = ""
    return Header(about, [section for section in sections if section.declarations])


def _rows(table: re.Match) -> str:
    """What the preprocessor makes of a table, with what it says of each row."""
    lines = []
    for row in words.rows(table["name"], table["macro"]):
        code = re.sub(r"\w+", lambda word, row=row: str(row.get(word[0], word[0])), table["code"]).replace("##", "")
        lines.append(f"  {code}" + (f"  /* {row['about']} */" if row["about"] else ""))
    return "\n".join(lines)


def _names(code: str) -> list[str]:
    """What it declares: functions, types, macros."""
    plain = re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL)
    outside = re.sub(r"\{.*?\}", "{}", plain, flags=re.DOTALL)
    names = re.findall(r"^\s*#define (\w+)", plain, re.MULTILINE)
    names += re.findall(r"\}\s*(\w+)\s*;", outside)
    names += re.findall(r"typedef (?:struct |enum )?\w+ (\w+);", outside)
    names += re.findall(r"\b(offpath_\w+)\s*\([^;]*;", outside)
    return names


def _stripped(text: str) -> str:
    return "\n".join(re.sub(r"^\s*\* ?", "", line) for line in text.split("\n"))
