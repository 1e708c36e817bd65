# SPDX-License-Identifier: BSD-3-Clause
"""The files and commands of docs/guide-tasks.md, and the benchmark of tasks."""

import json
import re

import openmp_support
from conftest import ROOT, offpath, succeeded
from guide_support import Place, blocks
from openmp_support import requires

GUIDE = (ROOT / "docs" / "guide-tasks.md").read_text()


def run_commands_of(section, tmp_path, before=()):
    """Its programs, as the guide builds and runs them, print what it says."""
    # The others are those of test_lab_tasks.py and test_arm_tasks.py.
    left_out = ("./offpath", "offpath run --dpus", "aarch64-linux-gnu-gcc")
    lines = [line for block in blocks(section) for line in block if not line.startswith(left_out)]
    done = Place().run(section, [*before, *lines], tmp_path)
    assert done.returncode == 0, (lines, done.stdout, done.stderr)
    printed = done.stdout
    assert f"It prints `{printed.strip()}`" in section


IN_ITSELF = "## A function in the program itself\n"
BEFORE, TARGET = GUIDE.split(IN_ITSELF)
TARGET, AFTER = TARGET.split("\n## ", 1)


def test_the_guides_program_is_built_and_prints_what_it_says(tmp_path):
    run_commands_of(BEFORE + AFTER, tmp_path)


@requires(openmp_support.missing_compiler())
def test_the_guides_program_with_a_function_in_itself_prints_what_it_says(tmp_path):
    run_commands_of(TARGET, tmp_path, blocks(BEFORE)[0][:1])


def test_every_setting_of_the_guide_is_known():
    settings = set(re.findall(r"OFFPATH_TASK_[A-Z_]+_(?:BYTES|MS)|OFFPATH_TASK_(?:BALANCE|EXECUTORS|FOLDERS)", GUIDE))
    assert len(settings) == 6
    assert all(name in offpath("info").stdout for name in settings)


def test_the_benchmark_writes_what_it_has_measured(tmp_path):
    file = tmp_path / "tasks.json"
    env = {"OFFPATH_RUNTIME_DIR": str(tmp_path / "run")}
    done = succeeded(offpath(
        "bench", "tasks", "--share", "--repeats", "20", "--count", "200", "--runs", "1", "--json", str(file), env=env
    ))
    assert "empty task" in done.stdout
    found = json.loads(file.read_text())
    assert {"meta", "rows"} <= set(found)
    (row,) = found["rows"]
    assert row["empty_task_test_us"] > 0 and row["empty_task_wait_us"] > 0 and row["tasks_per_second"] > 0
