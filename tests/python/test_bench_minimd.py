# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench minimd`: every schedule is run and reported, whatever is gained here."""

import json

import pytest
from bench_support import program
from conftest import assert_one_line_error, offpath
from openmp_support import missing_compiler, requires


@requires(missing_compiler())
def test_every_schedule_has_a_row(tmp_path):
    for name in ("minimd_openmp", "minimd_tasks"):
        program("apps", "openmpi", name)
    file = tmp_path / "out.json"
    options = ("--cells", "6", "--every", "2,4", "--slower", "1,2", "--sides", "tasks", "--steps", "4", "--runs", "1")
    result = offpath("bench", "minimd", *options, "--json", str(file))
    assert result.returncode == 0 and "checks: " in result.stdout, result.stderr
    rows = json.loads(file.read_text())["rows"]
    variants = [(row["variant"], row["side"], row["dpu_slower"]) for row in rows[: len(rows) // 2]]
    assert variants == [
        ("host", None, 1), ("all cores", None, 1), ("relaxed", None, 1), ("offpath", "tasks", 1),
        ("offpath", "tasks", 2), ("hybrid", "tasks", 1), ("hybrid", "tasks", 2),
    ]  # fmt: skip
    assert all(row["verified"] and row["step_ns"] > 0 for row in rows)
    assert [row["gain"] for row in rows if row["variant"] == "host"] == [1, 1]
    # What shows what the DPU can do is not predicted; everything else beside it is.
    assert sum("predicted_ns" in row for row in rows) == 2 + 4


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--every", "0"], "--every"),
        (["--cells", "x"], "--cells"),
        (["--sides", "gpu"], "gpu"),
        (["--slower", ""], "--slower"),
    ],
)
def test_bad_options_are_one_line(options, named):
    assert_one_line_error(offpath("bench", "minimd", *options), named)
