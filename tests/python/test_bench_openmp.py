# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench openmp`: what it measures, writes and refuses. No figure is judged."""

import json

import openmp_support
from bench_support import assert_checks
from conftest import assert_one_line_error, offpath, succeeded
from offpath.bench.suite.openmp import ROW_OF_GOAL
from openmp_support import requires

pytestmark = requires(openmp_support.missing_compiler())


def test_rows_and_kernels(tmp_path):
    file = tmp_path / "result.json"
    result = succeeded(offpath(
        "bench", "openmp", "--runs", "1", "--repeats", "20", "--map", "1", "--kernels", "cg", "--small", "--halo", "3",
        "--json", str(file),
    ))  # fmt: skip
    found = json.loads(file.read_text())
    rows = {row["name"]: row for row in found["regions"]}
    assert {
        "empty region", "map(tofrom) of 128 B", "bulk map(to) / memcpy", "overlap of nowait and host",
        "halo: step / longer part", "halo: step / host alone",
    } <= rows.keys()  # fmt: skip
    assert all(row["value"]["median"] > 0 for row in rows.values())
    assert found["kernels"][0]["kernel"] == "cg" and found["kernels"][0]["verified"] is True
    assert found["meta"]["devices"][0]["number"] == 0
    assert "empty region" in result.stdout and "cg" in result.stdout
    assert_checks(found, result, list(ROW_OF_GOAL))


def test_what_it_refuses():
    assert_one_line_error(offpath("bench", "openmp", "--kernels", "fft"), "fft", "stencil")
    assert_one_line_error(offpath("bench", "openmp", "--json", "/proc/none/x"), "--json")
    assert_one_line_error(offpath("bench", "openmp", env={"OFFPATH_DEVICES": "none"}), "No device answers")
