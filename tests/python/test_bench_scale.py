# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench scale`, with few ranks: that it says what they take; how long anything takes is not tested."""

import json

import pytest
from conftest import assert_one_line_error, offpath, succeeded
from offpath.bench.suite import scale

STAGES = ["init", "dup", "split", "reduce", "exchange", "all communicators", "message", "window"]


@pytest.mark.machine
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_command_writes_a_row_for_each_stage(mpi, tmp_path):
    file = tmp_path / "scale.json"
    succeeded(offpath("bench", "scale", "--mpi", mpi, "--ranks", "2,4", "--runs", "1", "--json", str(file)))
    result = json.loads(file.read_text())
    found = [(row["ranks"], row["mode"], row["stage"]) for row in result["rows"]]
    assert found == [
        (ranks, mode, stage)
        for ranks in (2, 4)
        for mode in ("native", "offpath")
        for stage in STAGES
    ]
    for row in result["rows"]:
        assert row["verified"] and row["first_ns"] > 0 and row["rank_pss_kib"] > 0
        assert (row["service_pss_kib"] > 0) == (row["mode"] == "offpath")
        assert row["service_threads_count"] == (
            0 if row["mode"] == "native" else pytest.approx(3, abs=2)
        )
        # Of 2 ranks half a service is in it.
        assert "beyond_kib" not in row or row["beyond_kib"] < 16384
    fits = {(fit["mode"], fit["stage"]): fit for fit in result["fits"]}
    assert set(fits) == {
        (mode, stage) for mode in ("native", "offpath") for stage in STAGES
    }
    # A rank's memory does not grow with the others by more than what it is given to send to them.
    assert all(fit["rank_pss_exponent"] < 0.3 for fit in fits.values())


def test_command_refuses(tmp_path):
    assert_one_line_error(offpath("bench", "scale", "--ranks", "many"), "many")
    assert_one_line_error(offpath("bench", "scale", "--nodes", "65"), "--nodes")
    assert_one_line_error(offpath("bench", "scale", "--json", str(tmp_path)), "--json")


def test_exponents():
    points = [(4, 10.0), (16, 40.0), (64, 160.0)]
    assert scale.exponent(points) == pytest.approx(1)
    assert scale.exponent([(x, 7.0) for x, _ in points]) == pytest.approx(0)
    assert scale.exponent([(x, x * x) for x, _ in points]) == pytest.approx(2)


def row(mode, ranks, stage="dup", **more):
    base = {
        "mpi": "mpich",
        "nodes": 1,
        "ranks": ranks,
        "mode": mode,
        "stage": stage,
        "verified": True,
    }
    return base | {"first_ns": 100e6, "rank_pss_kib": 1000, "service_pss_kib": 0} | more


def test_memory_beyond_counts_the_service_once():
    rows = [
        row("native", 64),
        row("offpath", 64, rank_pss_kib=1500, service_pss_kib=64000),
    ]
    rows += [
        row("native", 4),
        row("offpath", 4, rank_pss_kib=9000, service_pss_kib=64000),
    ]
    rows += [row("offpath", 8)]  # natively it failed
    found = scale.with_memory_beyond(rows)
    assert [each.get("beyond_kib") for each in found] == [None, 1500, None, 24000, None]
    checks = scale.BENCHMARK.checks(
        {"meta": {}, "rows": found, "fits": scale.fits(found)}
    )
    values = {each["name"]: each["value"] for each in checks}
    assert values == {"mpich/scale_rank_kib": 1500, "mpich/scale_dup_ratio": 1}


def test_init_may_take_as_long_as_a_service_does():
    rows = [row("native", 4, "init"), row("offpath", 4, "init", first_ns=125e6)]
    (check,) = scale.BENCHMARK.checks({"meta": {}, "rows": rows})
    assert (
        check["name"] == "mpich/scale_init_ratio"
        and check["value"] == pytest.approx(1.05)
        and check["met"]
    )
