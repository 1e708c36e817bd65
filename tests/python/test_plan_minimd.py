# SPDX-License-Identifier: BSD-3-Clause
"""The model of molecular dynamics beside a DPU, with made-up runs; nothing is measured."""

import json
from dataclasses import replace

import pytest
from conftest import assert_one_line_error, offpath
from offpath.plan.minimd import Dpu, Host, knee, predict

PHASES = ("integrate", "guard", "halo", "force", "reverse", "migrate", "sort", "borders", "build", "post", "ship",
          "wait", "thermo")  # fmt: skip


def made_up(schedule, seconds, relaxed=0, shared=0, share=0.0, force=0.0, **phases):
    """40 steps of 1000 atoms on one rank, lists every 4."""
    return {
        "atoms": 1000, "ranks": 1, "timed_steps": 40, "every": 4, "schedule": schedule, "seconds": seconds,
        "rebuilds": 10, "relaxed": relaxed, "guard_hits": 0, "shared_steps": shared, "share": share, "dpu_repeats": 1,
        "phases_s": {name: phases.get(name, 0.0) for name in PHASES},
        "other_side_s": {"in": 0.0, "force": force, "replay": 0.0, "out": 0.0, "share": 0.0, "ship": 0.0},
        "other_side_count": {"all": relaxed, "share": shared, "ship": relaxed},
    }  # fmt: skip


# A step of 1 + 10, and 20 for lists: 40 x 11 + 10 x 20.
HOST_RUN = made_up("host", 640.0, force=0, build=200.0) | {}
HOST_RUN["phases_s"]["force"] = 400.0


def test_the_host_in_terms_of_the_model():
    host = Host.of(HOST_RUN)
    assert (host.step_s, host.force_s, host.rebuild_s) == pytest.approx((1.0, 10.0, 20.0))
    assert host.predicted_s(4) == pytest.approx(16.0)


def test_forces_are_hidden_behind_lists_or_the_other_way_round():
    host = Host.of(HOST_RUN)
    dpu = Dpu(1.0, 0.0, 0.0, 0.0, 0.0)
    found = predict(host, dpu, 4)  # t_F = 10 < t_N = 20: 3 steps of 11 and one of 1 + 20
    assert (found.host_s, found.off_path_s) == pytest.approx((16.0, 54 / 4))
    slow = predict(host, dpu.with_speed(threads=1, slower=4), 4)  # t_F = 40
    assert slow.off_path_s == pytest.approx((33 + 41) / 4)
    assert knee(host, dpu.with_speed(slower=4)) == pytest.approx(2.0)  # two such threads are as long as t_N
    assert knee(host, replace(dpu, replay_s=1.0)) == float("inf")


def test_a_hybrid_run_explains_itself():
    host = Host.of(HOST_RUN)
    off_path = made_up("offpath", 540.0, relaxed=10, force=100.0, ship=10.0)
    # Shared: 1 + half of 10 + 2 that nothing explains; relaxed: 1 + 20 + 1 for lists; one step alone after each
    seconds = 20 * 8.0 + 10 * 22.0 + 10 * 11.0
    hybrid = made_up("hybrid", seconds, relaxed=10, shared=20, share=0.5)
    dpu = Dpu.of(off_path, host, hybrid)
    assert (dpu.force_ratio, dpu.ship_s * 1000, dpu.alone_steps) == pytest.approx((1.0, 1.0, 1.0))
    assert dpu.share_overhead_s * 1000 == pytest.approx(2.0)
    assert predict(host, dpu, 4).hybrid_s == pytest.approx(seconds / 40)
    assert dpu.with_speed(slower=3).share == pytest.approx(0.25)


def test_the_command(tmp_path):
    files = {}
    for name, run in (("host", HOST_RUN), ("dpu", made_up("offpath", 540.0, relaxed=10, force=100.0))):
        files[name] = tmp_path / f"{name}.json"
        files[name].write_text(json.dumps(run))
    argv = ["plan", "minimd", "--host", str(files["host"]), "--dpu", str(files["dpu"])]
    rows = json.loads(offpath(*argv, "--every", "4", "--threads", "1,2", "--slower", "4", "--json").stdout)
    assert [row["gain"] for row in rows] == pytest.approx([16 / (74 / 4), 16 / (54 / 4)])
    assert rows[0]["knee_threads"] == pytest.approx(2.0)
    shown = offpath(*argv)
    assert shown.returncode == 0 and "knee" in shown.stdout
    beside = made_up("offpath", 540.0, relaxed=10, force=100.0)
    for change, words in (
        ({"atoms": 2000}, "atoms: 1000 and 2000"), ({"skin": 0.5}, "skin: None and 0.5"), ({"phases_s": 1}, "damaged"),
        ({"other_side_count": {}}, "damaged"), ({"dpu_repeats": 0}, "damaged"),
    ):  # fmt: skip
        files["dpu"].write_text(json.dumps(beside | change))
        assert_one_line_error(offpath(*argv), words)
    files["dpu"].write_text(json.dumps(beside))
    assert_one_line_error(offpath(*argv[:3], str(files["dpu"]), *argv[4:]), "--host has the schedule offpath")
    beside["other_side_s"]["replay"] = 1e6  # whatever the threads are, the DPU is later than the host
    files["dpu"].write_text(json.dumps(beside))
    assert "Infinity" not in (shown := offpath(*argv, "--json").stdout) and json.loads(shown)[0]["knee_threads"] is None
    files["dpu"].write_text("{}")
    assert_one_line_error(offpath(*argv), "is no result of minimd")
    argv[-1] = str(files["host"])
    assert_one_line_error(offpath(*argv), "--dpu")
    argv[-1] = str(tmp_path / "good.json")
    (tmp_path / "good.json").write_text(json.dumps(made_up("offpath", 540.0, relaxed=10, force=100.0)))
    for none in ("0", "0.5", "inf"):  # no step is less than one
        assert_one_line_error(offpath(*argv, "--every", none), "--every")
