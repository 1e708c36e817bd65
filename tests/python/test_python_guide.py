# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/guide-python.md, started by its commands, print what it says."""

import os
import re

import pytest
from api_support import require_library
from conftest import ROOT
from guide_support import Place, missing_for

GUIDE = (ROOT / "docs" / "guide-python.md").read_text()
SHOWN = re.findall(r"^    (.*python [^\n]*)\n(?:\nprints\n)?\n```\n([^`]*)```", GUIDE, re.MULTILINE)


@pytest.mark.parametrize("command, printed", SHOWN, ids=[command for command, _ in SHOWN])
def test_programs_of_the_guide(command, printed, tmp_path):
    require_library()
    if "mpirun" not in command and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("no core is left for a service")
    if missing := missing_for([command]):
        pytest.skip(missing)
    done = Place().run(GUIDE, [command], tmp_path)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_all_programs_are_run():
    assert len(SHOWN) == 4


