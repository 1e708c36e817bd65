# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench compression` and its program, shortly: what it counts; how fast anything is, is not tested."""

import json

from conftest import assert_one_line_error, offpath

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


def test_command_refuses(tmp_path):
    assert_one_line_error(offpath("bench", "compression", "--size", "many"), "many")
    assert_one_line_error(offpath("bench", "compression", "--file", str(tmp_path / "none"), "--size", "4K"), "none")
