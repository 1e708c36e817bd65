# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench worker` and its program, shortly: that it counts what it says; how fast anything is, is not tested."""

import json

import pytest
from conftest import assert_one_line_error, offpath, succeeded

COPIES = {"near": 1, "workers": 1, "sockets": 2}


def test_command_writes_a_row_for_each_way_and_size(tmp_path):
    file = tmp_path / "worker.json"
    modes = ["--security", "auth,encrypt,user-data-unprotected"]
    few = ["--sizes", "64K,1M", "--runs", "2", "--milliseconds", "1"]
    done = succeeded(offpath("bench", "worker", *modes, *few, "--json", str(file)))
    result = json.loads(file.read_text())
    ways = [("near", None), ("workers", None)] + [
        ("sockets", name) for name in ("auth", "encrypt", "user-data-unprotected")
    ]
    found = [(row["way"], row["security"], row["bytes"]) for row in result["rows"]]
    assert found == [(*way, size) for way in ways for size in (1 << 16, 1 << 20)]
    for row in result["rows"]:
        assert row["workers_count"] == (1 if row["way"] == "near" else 2)
        assert 0 < row["moved_bytes_per_s_min"] <= row["moved_bytes_per_s"] <= row["moved_bytes_per_s_max"]
        assert row["memcpy_bytes_per_s"] > 0 and row["memcpy_ratio"] > 0
        # Over sockets there are the messages that ask for blocks, too.
        assert row["copies_per_byte"] == pytest.approx(COPIES[row["way"]], rel=0.15), row
    assert [(row["security"], row["bytes"]) for row in result["messages"]] == [
        (name, size) for name in ("auth", "encrypt", "user-data-unprotected") for size in (0, 4096)
    ]
    assert all(row["message_ns"] > 0 for row in result["messages"])
    assert "sockets encrypt" in done.stdout and "ns each" in done.stdout


def test_command_refuses(tmp_path):
    assert_one_line_error(offpath("bench", "worker", "--sizes", "many"), "many")
    assert_one_line_error(offpath("bench", "worker", "--ways", "air"), "air", "near")
    assert_one_line_error(offpath("bench", "worker", "--security", "none"), "none", "encrypt")
    assert_one_line_error(offpath("bench", "worker", "--json", str(tmp_path)), "--json")
