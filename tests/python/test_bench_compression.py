# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench compression` and its program, shortly: what it counts; how fast anything is, is not tested."""

import json

import pytest
from conftest import assert_one_line_error, offpath
from offpath import compression_sources, mpis
from offpath.paths import paths

FIELDS = {"velocity", "halo", "tiles", "single", "text", "random"}


def test_command_writes_a_row_for_each_field_and_method(tmp_path):
    file = tmp_path / "compression.json"
    done = offpath("bench", "compression", "--size", "256K", "--chunks", "4K,56K",
                   "--repeats", "1", "--json", str(file))  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())["rows"]
    ratios = {(row["field"], row["method"], row["chunk_bytes"]): row["ratio"] for row in rows if row["kept"]}
    assert {row["field"] for row in rows} == FIELDS and all(row["whole"] for row in rows)
    assert all(row["encode_bytes_per_s"] > 0 for row in rows)
    for codec in ("lz4", "zstd", "deflate", "zlib"):
        assert ratios["random", codec, 57344] == 1 and ratios["text", codec, 57344] > 2, codec
    assert ratios["halo", "zstd:shuffle=8", 57344] > 1.2 * ratios["velocity", "zstd", 57344]
    assert ratios["text", "zstd", 57344] > ratios["text", "zstd", 4096]
    assert sum(row["method"] == "zlib, one shot" for row in rows) == len(FIELDS)
    lossy = [row for row in rows if row["method"].split(":")[0] in ("zfp", "sz3")]
    assert all(row["largest_error"] > 0 and row["field"] not in ("text", "random") for row in lossy)
    assert "zstd:shuffle=8" in done.stdout and "lz4, new" in done.stdout


@pytest.mark.machine
def test_what_applications_hold_and_packages_bring(tmp_path):
    if not paths().app("fft3d", mpis.OPENMPI).exists():
        pytest.skip("fft3d is not built")
    file = tmp_path / "result.json"
    done = offpath("bench", "compression", "--applications", "--standard", "--size", "256K", "--chunks", "56K",
                   "--repeats", "1", "--json", str(file))  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [row for row in json.loads(file.read_text())["rows"] if row["field"] not in FIELDS]
    held = set(compression_sources.APPS)
    assert held <= {row["field"] for row in rows} <= held | set(compression_sources.STANDARD)
    assert all(row["whole"] and row["bytes"] > 64 << 10 for row in rows)
    assert all(row["first_chunk_ns"] > 0 and row["chunk_ns"] > 0 for row in rows if "first_chunk_ns" in row)
    lossless = [row["ratio"] for row in rows if row["field"] == "bspmm" and row["method"][:3] not in ("zfp", "sz3")]
    assert max(lossless) < 1.3, "its tiles are noise"


def test_command_refuses(tmp_path):
    assert_one_line_error(offpath("bench", "compression", "--size", "many"), "many")
    assert_one_line_error(offpath("bench", "compression", "--file", str(tmp_path / "none"), "--size", "4K"), "none")
