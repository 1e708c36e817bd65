# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench tasks --labs`: every case is run and reported, whatever is gained here."""

import json

import pytest
from bench_support import program
from conftest import assert_one_line_error, offpath, requires_root


@requires_root
def test_every_case_has_a_row(tmp_path):
    program("bench", "openmpi", "balance")
    file = tmp_path / "out.json"
    options = ("--labs", "2x1", "--mpi", "openmpi", "--runs", "1", "--steps", "4", "--ms", "0.5", "--rounds", "50")
    done = offpath("bench", "tasks", *options, "--json", str(file))
    assert done.returncode == 0 and "checks: " in done.stdout, done.stderr
    result = json.loads(file.read_text())
    assert [row["uneven"] for row in result["rows"]] == 2 * ["none", "loaded", "slow"]
    assert [row["piece"] for row in result["rows"]] == 3 * ["waits"] + 3 * ["computes"]
    assert all(row["ranks"] == 2 and row["off_s"] > 0 and row["on_s"] > 0 for row in result["rows"])
    assert len(result["checks"]) == 3 and all(each["unjudged"] for each in result["checks"])


@pytest.mark.parametrize("labs", ["4", "x", "0x2", "2x2x2", ""])
def test_bad_labs_are_one_line(labs):
    assert_one_line_error(offpath("bench", "tasks", "--labs", labs), "--labs")
