# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench multicast`: what its rows say, not how fast anything is."""

import json

import pytest
from conftest import assert_one_line_error, offpath, requires_root, succeeded

ALLGATHER = "--sizes 256K --collectives iallgather"


def rows_of(tmp_path, what, *options, least=0.9):
    written = tmp_path / "multicast.json"
    usual = "--nodes 2 --by multicast --no-hosts --repeats 2 --runs 1"
    succeeded(offpath("bench", "multicast", *usual.split(), *what.split(), "--json", str(written), *options))
    data = json.loads(written.read_text())
    for row in data["rows"]:
        assert row["verified"] and 0 < row["time_min_ns"] <= row["time_ns"] <= row["time_max_ns"]
        assert row["service_cpu_ns"] > 0 and row["chunks_per_cpu_s"] > 0
        assert row["down"] > least  # each link carries what its node receives
    return data


@requires_root
def test_losses_and_senders_are_swept(tmp_path):
    data = rows_of(tmp_path, ALLGATHER, "--loss", "5", "--loss-at", "up", "--chains", "0,1")
    assert [(row["loss_percent"], row["peer"]) for row in data["rows"]] == [
        (5, "multicast M=0"),
        (5, "multicast M=1"),
    ]
    assert data["meta"]["loss_at"] == "up" and data["meta"]["loss_of"] == "multicast"


@requires_root
def test_without_a_wish_all_algorithms_are_measured(tmp_path):
    rows = rows_of(tmp_path, "--sizes 64K --collectives ibcast", "--by", "")["rows"]
    assert [row["peer"] for row in rows] == ["multicast", "chain"]


@requires_root
def test_what_is_compressed_is_less_on_each_link(tmp_path):
    options = ["--sizes", "1M", "--field", "tiles", "--compress", "zstd:shuffle=8"]
    (row,) = rows_of(tmp_path, ALLGATHER, *options, least=0.1)["rows"]
    assert 0.1 < row["up"] < 0.6 and row["down"] < 0.6, row


@requires_root
def test_another_job_runs_meanwhile(tmp_path):
    (row,) = rows_of(tmp_path, ALLGATHER, "--while", "alltoall")["rows"]
    assert row["alltoall_time_ns"] > 0


@requires_root
@pytest.mark.nightly
def test_a_service_stops_meanwhile(tmp_path):
    (row,) = rows_of(tmp_path, "--sizes 1M --collectives ibcast", "--while", "stop", "--repeats", "8")["rows"]
    assert row["collective"] == "ibcast" and row["longest_ns"] > 0.5e9


@pytest.mark.parametrize(
    "options, words",
    [
        (["--nodes", "1"], ["--nodes 1"]),
        (["--chains", "two"], ["--chains two"]),
        (["--loss", "much"], ["'much' is not a loss"]),
        (["--field", "grass"], ["'grass'"]),
        (["--compress", "much"], ["'much'"]),
        (["--loss", "60"], ["Links cannot lose 60 %"]),
        (["--by", "bridge"], ["bridge"]),
    ],
)
def test_refuses(options, words):
    assert_one_line_error(offpath("bench", "multicast", *options), *words)
