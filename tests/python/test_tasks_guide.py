# SPDX-License-Identifier: BSD-3-Clause
"""The files and commands of docs/guide-tasks.md, and the benchmark of tasks."""

import json
import os
import re
import subprocess

from conftest import LIMIT_S, ROOT, offpath
from offpath.paths import paths

GUIDE = (ROOT / "docs" / "guide-tasks.md").read_text()


def test_the_guides_program_is_built_and_prints_what_it_says(tmp_path):
    for name, text in re.findall(r"```c\n// (\S+)\n(.*?)```", GUIDE, re.DOTALL):
        (tmp_path / name).write_text(text)
    lib = str(paths().prefix / "lib")
    env = os.environ | {
        "CPATH": str(ROOT / "include"),
        "LIBRARY_PATH": lib,
        "LD_LIBRARY_PATH": lib,
        "OFFPATH_RUNTIME_DIR": str(tmp_path / "run"),
    }
    printed = ""
    for line in re.findall(r"^    (\S.*)$", GUIDE, re.MULTILINE):
        # The latter two are those of test_lab_tasks.py and test_arm_tasks.py.
        if line.startswith(("./offpath", "offpath run --dpus", "aarch64-linux-gnu-gcc")):
            continue
        shell = ["sh", "-c", line]
        done = subprocess.run(shell, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        printed += done.stdout
    assert f"It prints `{printed.strip()}`" in GUIDE


def test_every_setting_of_the_guide_is_known():
    settings = set(re.findall(r"OFFPATH_TASK_[A-Z_]+_(?:BYTES|MS)|OFFPATH_TASK_(?:BALANCE|EXECUTORS|FOLDERS)", GUIDE))
    assert len(settings) == 6
    assert all(name in offpath("info").stdout for name in settings)


def test_the_benchmark_writes_what_it_has_measured(tmp_path):
    file = tmp_path / "tasks.json"
    env = {"OFFPATH_RUNTIME_DIR": str(tmp_path / "run")}
    done = offpath("bench", "tasks", "--share", "--repeats", "20", "--count", "200", "--json", str(file), env=env)
    assert done.returncode == 0, done.stderr
    assert "empty task" in done.stdout
    found = json.loads(file.read_text())
    assert {"meta", "rows"} <= set(found)
    (row,) = found["rows"]
    assert row["empty_task_test_us"] > 0 and row["empty_task_wait_us"] > 0 and row["tasks_per_second"] > 0
