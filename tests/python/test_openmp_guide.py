# SPDX-License-Identifier: BSD-3-Clause
"""The commands of docs/guide-openmp.md, in its order, with the programs of the tests in the place of the reader's."""

import os
import re
import shlex
import shutil
import subprocess

import openmp_support
from conftest import LIMIT_S, ROOT, captured
from openmp_support import PROGRAMS, requires
from test_openmp import own_runtime_folder  # noqa: F401

pytestmark = requires(openmp_support.missing_compiler() or openmp_support.missing_for("aarch64"))
STAYS = ("--foreground", "bench", "make")  # for ever, for long, or done


def guide_lines() -> list[str]:
    text = (ROOT / "docs" / "guide-openmp.md").read_text()
    lines = [re.split(r"\s+# ", line)[0] for line in re.findall(r"^    (\S.*)$", text, re.MULTILINE)]
    return [line for line in lines if not any(word in line.split() for word in STAYS)]


def test_every_command_of_the_guide_runs(tmp_path):
    shutil.copy(PROGRAMS / "hello.c", tmp_path / "app.c")
    shutil.copy(PROGRAMS / "library.c", tmp_path / "code.c")
    shutil.copy(PROGRAMS / "log.c", tmp_path / "log.c")
    prefix = openmp_support.paths().prefix
    env = os.environ | {
        "PATH": f"{prefix / 'bin'}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "OFFPATH_PREFIX": str(prefix),
    }
    lines = guide_lines()
    assert sum(line.startswith("offpath-cc") for line in lines) >= 4
    try:
        for line in lines:
            line = line.replace("build/release", shlex.quote(str(prefix))).replace("./offpath", str(ROOT / "offpath"))
            result = captured(["sh", "-c", line], cwd=tmp_path, env=env)
            assert result.returncode == 0, (line, result.stdout, result.stderr)
    finally:
        subprocess.run([ROOT / "offpath", "device", "stop", "--all"], env=env, capture_output=True, timeout=LIMIT_S)
