# SPDX-License-Identifier: BSD-3-Clause
"""The tables that C++ and Python share (include/offpath/words)."""

import shutil
import sys

import pytest
from conftest import ROOT, captured
from offpath.base import words

TABLE = """/* A comment with OFFPATH_OTHER(a) in it.
 *
 *   OFFPATH_ROW(NAME, number, made, about)
 *   OFFPATH_OTHER(name)
 *   OFFPATH_THIRD(NAME, about)
 */
#ifndef OFFPATH_OTHER
#define OFFPATH_OTHER(name)
#endif
#ifndef OFFPATH_THIRD
#define OFFPATH_THIRD(NAME, about) OFFPATH_ROW(NAME, 3, NAME, about)
#endif
OFFPATH_ROW(ONE, 1, PAIR(a, b), "") /* OFFPATH_ROW(NONE, 0, 0, "") */
OFFPATH_OTHER(each)
OFFPATH_ROW(TWO, -2, 64 << 10,
            "it says \\"so\\", (once, "
            "and again)")
OFFPATH_THIRD(THREE, "the same")
#undef OFFPATH_ROW
"""


def test_a_table_is_read_as_the_preprocessor_does():
    assert words.read(TABLE) == (
        {"NAME": "ONE", "number": 1, "made": "PAIR(a, b)", "about": ""},
        {"NAME": "TWO", "number": -2, "made": "64 << 10", "about": 'it says "so", (once, and again)'},
        {"NAME": "THREE", "number": 3, "made": "THREE", "about": "the same"},
    )
    assert [row["NAME"] for row in words.read(TABLE, "THIRD")] == ["THREE"]
    assert words.read(TABLE, "OTHER") == ({"name": "each"},)


@pytest.mark.parametrize("file", sorted(path.stem for path in words.folder().glob("*.def")))
def test_every_row_has_what_its_table_says(file):
    text = (words.folder() / f"{file}.def").read_text()
    macros = words.macros(text)
    assert macros
    for macro, columns in macros.items():
        rows = words.rows(file, macro)
        assert rows and all(list(row) == columns for row in rows)
        numbers = [row["number"] for row in rows if "number" in row]
        assert len(set(numbers)) == len(numbers)
        assert f"#undef OFFPATH_{macro}\n" in text


@pytest.mark.parametrize("table", ["algorithms", "collective_kinds", "operators"])
def test_texts_are_names_in_lower_case(table):
    assert all(row["text"] == row["NAME"].lower() for row in words.rows(table))


def test_an_installed_package_has_tables_of_its_own(tmp_path):
    package = tmp_path / "offpath" / "base"
    package.mkdir(parents=True)
    shutil.copy(words.__file__, package / "words.py")
    shutil.copytree(words.folder(), tmp_path / "offpath" / "_words")
    code = "import words; print(words.folder(), words.numbers('losses')['PROCESS'])"
    out = captured([sys.executable, "-c", code], cwd=package, check=True).stdout
    assert out.split() == [str(tmp_path / "offpath" / "_words"), "3"]


def test_the_tables_are_installed_with_the_headers():
    text = (ROOT / "packaging" / "CMakeLists.txt").read_text()
    assert "PATTERN *.def" in text and "offpath/_words" in text
