# SPDX-License-Identifier: BSD-3-Clause
"""Every function that MPI's headers declare is intercepted, passed on, or named as not handled:
include/offpath/words/mpi_functions.def and mpi_others.def."""

import re
import shutil

import pytest
from conftest import ROOT, captured
from offpath.base import words

INTERCEPTED, OTHERS = ([row["name"] for row in words.rows(table)] for table in ("mpi_functions", "mpi_others"))


def declared(mpi: str) -> set[str]:
    """But for the tools' interface, which speaks of the library and not with others."""
    shown = captured([f"mpicc.{mpi}", "-show"], check=True).stdout
    folders = [word for word in shown.split() if word.startswith("-I")]
    command = ["gcc", "-E", "-P", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", *folders, "-x", "c", "-"]
    text = captured(command, input="#include <mpi.h>\n", check=True).stdout
    types = set(re.findall(r"\bMPI_(\w+);", text))
    return {name for name in re.findall(r"\bMPI_([A-Z]\w+)\s*\(", text) if name[:2] != "T_"} - types


def test_no_function_stands_twice():
    both = INTERCEPTED + OTHERS
    assert len(both) > 550 and sorted(both) == sorted(set(both))


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_every_function_of_the_header_is_in_a_list(mpi):
    if not shutil.which(f"mpicc.{mpi}"):
        pytest.skip(f"there is no mpicc.{mpi}")
    found = declared(mpi)
    assert len(found) > 350
    missing = found - set(INTERCEPTED) - set(OTHERS)
    assert not missing, f"{mpi} has functions that are in neither table: {sorted(missing)}"


def test_what_the_back_end_calls_natively_is_among_the_others():
    text = (ROOT / "frontends" / "mpi" / "functions" / "natives.def").read_text()
    called = set(re.findall(r"^OFFPATH_MPI_FUNCTION\((\w+)\)", text, re.MULTILINE))
    assert called and called <= set(OTHERS)


def test_columns_have_values_that_their_comment_explains():
    waits = {re.sub(r"\(\d\)", "", row["waits"]) for row in words.rows("mpi_functions")}
    assert waits == {"blocks", "polls", "returns"}
    reasons = {row["why"] for row in words.rows("mpi_others", "MPI_NOT_HANDLED")}
    explained = re.search(r"\* why: (.*?)\.\n", (words.folder() / "mpi_others.def").read_text(), re.DOTALL)[1]
    assert len(reasons) == 7 and all(reason in explained for reason in reasons)
