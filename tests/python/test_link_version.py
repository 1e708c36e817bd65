# SPDX-License-Identifier: BSD-3-Clause
"""What docs/stability.md says of the version of the link, as a list of what processes of two releases say to each
other while services are replaced. OFFPATH_TEST_ACCEPT=1 writes the list anew; read stability.md before."""

import hashlib
import os
import re

from conftest import ROOT
from offpath.telemetry import observation

LIST = ROOT / "tests" / "packaging" / "link.txt"
LINK = ROOT / "src" / "session" / "link.hpp"
SAID = (
    "include/offpath/words/*.def",
    "src/collective/record.hpp",
    "src/fabric/tcp/address.hpp",
    "src/fabric/tcp/frame.hpp",
    "src/ops/*/*.cpp",  # what one member expects of the others
    "src/remote/journal.hpp",
    "src/remote/record.hpp",
    "src/session/layout.hpp",
    "src/session/link.hpp",
    "src/session/member_address.hpp",
    "src/tasks/record.hpp",
    "src/wire/*.hpp",
)
OURS_ALONE = ("mpi_functions.def", "mpi_others.def", "observed.def", "policy_rows.def", "waits.def")  # of one process


def code_of(text: str) -> str:
    """Without comments, line breaks and spaces."""
    return re.sub(r"\s+", "", re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL))


def version() -> int:
    return int(re.search(r"kLinkVersion = (\d+);", LINK.read_text())[1])


def found() -> list[str]:
    files = sorted({file for pattern in SAID for file in ROOT.glob(pattern) if file.name not in OURS_ALONE})
    marks = [(hashlib.sha256(code_of(file.read_text()).encode()).hexdigest()[:16], file) for file in files]
    return [f"link {version()}", *(f"{mark} {file.relative_to(ROOT)}" for mark, file in marks)]


def test_the_version_rises_with_what_is_said():
    """If processes of the release before would misunderstand what a changed file says, kLinkVersion rises with it."""
    now = found()
    assert len(now) >= 30
    if os.environ.get("OFFPATH_TEST_ACCEPT"):
        LIST.write_text("\n".join(now) + "\n")
    known = LIST.read_text().splitlines()
    changed = sorted(set(now) ^ set(known))
    assert not changed, f"changed: {changed}. {test_the_version_rises_with_what_is_said.__doc__}"


def test_the_command_line_says_the_same_version():
    assert observation.LINK_VERSION == version()


def test_the_list_notices_what_is_said_only():
    one, other = "int a; // one\n/* two\n three */ int  b;\n", "int a;\nint b; // two"
    assert code_of(one) == code_of(other) != code_of("int a, c;")
