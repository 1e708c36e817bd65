# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench compression` and its program, shortly: what it counts; how fast anything is, is not tested."""

import contextlib
import json
from dataclasses import replace

import pytest
from conftest import assert_one_line_error, offpath, require, succeeded
from offpath.base.paths import paths
from offpath.bench import compression_sources, compression_transfers
from offpath.launch import mpis
from offpath.places import comparison

FIELDS = {"velocity", "halo", "tiles", "single", "text", "random"}


def test_command_writes_a_row_for_each_field_and_method(tmp_path):
    file = tmp_path / "compression.json"
    done = succeeded(offpath(
        "bench", "compression", "--size", "256K", "--chunks", "4K,56K", "--repeats", "1", "--json", str(file)
    ))
    rows = json.loads(file.read_text())["rows"]
    ratios = {(row["field"], row["method"], row["chunk_bytes"]): row["ratio"] for row in rows if row["kept"]}
    assert {row["field"] for row in rows} == FIELDS and all(row["verified"] for row in rows)
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
    require(paths().app("fft3d", mpis.OPENMPI))
    file = tmp_path / "result.json"
    done = offpath("bench", "compression", "--applications", "--standard", "--size", "256K", "--chunks", "56K",
                   "--repeats", "1", "--json", str(file))  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [row for row in json.loads(file.read_text())["rows"] if row["field"] not in FIELDS]
    held = set(compression_sources.APPS)
    assert held <= {row["field"] for row in rows} <= held | set(compression_sources.STANDARD)
    assert all(row["verified"] and row["bytes"] > 64 << 10 for row in rows)
    assert all(row["first_chunk_ns"] > 0 and row["chunk_ns"] > 0 for row in rows if "first_chunk_ns" in row)
    lossless = [row["ratio"] for row in rows if row["field"] == "bspmm" and row["method"][:3] not in ("zfp", "sz3")]
    assert max(lossless) < 1.3, "its tiles are noise"


@pytest.fixture
def launched(monkeypatch):
    """Wishes and works of launches, which measure nothing."""
    seen = []

    def run(place, argv, wish):
        if len(seen) == seen_before_interrupt:
            raise KeyboardInterrupt
        given = argv[argv.index("--work-iterations") + 1] if "--work-iterations" in argv else None
        seen.append((argv[argv.index("--field") + 1], wish, given))
        for size, work in ((1024, len(seen)), (4096, 4 * len(seen))):
            times = {f"{time}{part}_ns": 1000 * size for time in ("t_pure", "t_total") for part in ("", "_min", "_max")}
            yield {
                "bytes": size,
                "verified": True,
                "work_iterations": work,
                "efficiency": 1.0,
                "coded_ratio": 1.0,
            } | times

    seen_before_interrupt = 6
    monkeypatch.setattr(compression_transfers, "_run", run)
    monkeypatch.setattr(compression_transfers, "_predicted", lambda row: 1.0)
    monkeypatch.setattr(comparison, "place", lambda *_: contextlib.nullcontext())
    return seen


def test_an_interruption_keeps_what_was_measured(launched, capsys):
    result = compression_transfers.measure(["100mbit"], ["ialltoall"], [1024, 4096], 3, 1)
    said = capsys.readouterr().err
    assert "12 launches, about" in said and "interrupted after 6 of 12 launches" in said
    assert not result["meta"]["complete"] and len(result["rows"]) == 12
    assert all(row["t_pure_ratio"] == 1 for row in result["rows"])
    # All launches with one field do the work that was set for the first one.
    assert launched == [
        ("tiles", "off", None), *(("tiles", wish, "1,4") for wish in compression_transfers.WISHES[1:]),
        ("halo", "off", None), ("halo", "auto", "5,20"),
    ]  # fmt: skip


def test_how_long_transfers_take_is_estimated():
    """From 1 MiB on links of 100 Mbit/s take most of it: minutes, which is to be said before."""
    estimate = compression_transfers.estimate_s
    slow, fast = (
        compression_transfers.sites([rate], ["ialltoall", "iallgather"], [], 3) for rate in ("100mbit", "1gbit")
    )
    assert len(slow[0].cases) == 24
    assert 120 < estimate(slow, [1 << 20, 4 << 20], 3) < 300
    assert estimate(fast, [1 << 20, 4 << 20], 3) < estimate(slow, [1 << 20, 4 << 20], 3) / 2
    assert estimate(slow, [4 << 20], 3) > 3 * (estimate(slow, [1 << 20], 3) - 24 * 2.5)


def test_applications_that_are_not_built_are_left_out(tmp_path, monkeypatch, capsys):
    bare = replace(paths(), apps=tmp_path)
    monkeypatch.setattr(compression_sources, "paths", lambda: bare)
    assert list(compression_sources.of_applications(tmp_path)) == []
    assert capsys.readouterr().err.count("is left out") == len(compression_sources.APPS)


def test_command_refuses(tmp_path):
    assert_one_line_error(offpath("bench", "compression", "--size", "many"), "many")
    assert_one_line_error(offpath("bench", "compression", "--file", str(tmp_path / "none"), "--size", "4K"), "none")
