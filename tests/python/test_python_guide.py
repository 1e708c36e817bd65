# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/guide-python.md, started by its commands, print what it says."""

import re
import shutil
import subprocess
import sys

import pytest
from api_support import LAUNCHERS, environment  # noqa: F401
from conftest import LIMIT_S, ROOT

GUIDE = (ROOT / "docs" / "guide-python.md").read_text()
SHOWN = re.findall(r"^    ((?:mpirun|python) [^\n]*)\n(?:\nprints\n)?\n```\n([^`]*)```", GUIDE, re.MULTILINE)


@pytest.mark.parametrize("command, printed", SHOWN, ids=[command for command, _ in SHOWN])
def test_programs_of_the_guide(command, printed, environment, tmp_path):  # noqa: F811
    for text in re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL):
        name = re.match(r"# (\w+\.py)\n", text)[1]
        (tmp_path / name).write_text(text)
    words = command.replace("python ", f"{sys.executable} ")
    if shutil.which("mpirun.mpich"):
        words = words.replace("mpirun ", " ".join(LAUNCHERS["mpich"]) + " ")
    done = subprocess.run(words.split(), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_all_programs_are_run():
    assert len(SHOWN) == 3


def test_the_wheel_has_the_name_that_is_shown():
    from offpath import __version__

    assert f"build/wheel/offpath-{__version__}-py3-none-linux_x86_64.whl" in GUIDE
