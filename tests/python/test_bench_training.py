# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of trainings: what it makes of launches, and at length that it runs."""

import json

import pytest
from conftest import assert_one_line_error, offpath, requires_root
from offpath.bench import training_sharded
from offpath.bench.suite import training
from offpath.bench.training_epochs import Where, rows
from torch_support import interpreter, sharding_interpreter

WAYS = {"host": 1.2, "workers": 1.0, "O-N": 0.8, "O-DA": 1.02, "O-MV": 1.1, "O-Hy": 0.9}


def launch(factor, verified=True):
    return {
        "samples": 120, "verified": verified, "effort": 1,
        "profile": [{"batches": 4, "batches_s": 0.2, "validation_s": 0.1, "epoch_s": 1.2}],
        "epochs": {way: [seconds * factor, 9.0, 0.0] for way, seconds in WAYS.items()},
        "host_cpu": dict.fromkeys(WAYS, 1.0), "last_losses": dict.fromkeys(WAYS, 2.0),
    }  # fmt: skip


def test_gains_are_of_one_launch_each_and_goals_of_one_node():
    usual = Where("cores", 1, "1gbit", None)
    found = {row["way"]: row for row in rows(usual, [launch(1), launch(2), launch(3)])}
    assert found["O-DA"]["epoch_s"] == 2.04 and found["O-DA"]["epoch_max_s"] == pytest.approx(3.06)
    assert found["O-Hy"]["gain"] == pytest.approx(1.2 / 0.9) and found["host"]["samples_per_s"] == 50
    assert found["O-MV"]["predicted_s"] and found["O-N"]["predicted_s"] is None
    elsewhere = rows(Where("dpu", 2, "1gbit", None), [launch(1, verified=False)])
    assert not any(row["verified"] or row["predicted_s"] for row in elsewhere)
    checked = training.BENCHMARK.checks({"meta": {}, "epochs": [*elsewhere, *found.values()]})
    assert {row["name"]: round(row["value"], 2) for row in checked} == {
        "training_batches_gain_ratio": 1.18, "training_both_gain_ratio": 1.33, "training_workers_ratio": 1.02,
    }  # fmt: skip
    assert training.BENCHMARK.checks({"meta": {}, "epochs": elsewhere}) == []


@pytest.mark.parametrize(
    "options, words",
    [
        (["--placement", "moon"], "'moon' is not a placement"),
        (["--epoch-nodes", "1,x"], "--epoch-nodes 1,x"),
        (["--rate", "fast"], "not a link rate"),
    ],
)
def test_options_that_make_no_sense(options, words):
    assert_one_line_error(offpath("bench", "training", *options), words)


@pytest.mark.nightly
@pytest.mark.machine
@requires_root
@pytest.mark.parametrize("model, shape", [("resnet20", "cifar10"), ("shufflenet", "tiny-imagenet")])
def test_it_runs(model, shape, tmp_path):
    interpreter()
    small = [
        "--parts",
        "epochs",
        "--runs",
        "1",
        "--rounds",
        "1",
        "--pictures",
        "32",
        "--model",
        model,
        "--shape",
        shape,
    ]
    places = ["--placement", "cores,dpu,node", "--epoch-nodes", "1,2", "--rate", "1gbit"]
    result = offpath("bench", "training", *small, *places, "--json", str(tmp_path / "out"))
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "out").read_text())["epochs"]
    assert len(found) == 3 * 2 * len(WAYS) and all(row["verified"] and row["epoch_s"] > 0 for row in found)


def test_gains_of_sharded_models_are_of_one_launch_each():
    def launch(factor, verified=0.0):
        times = {
            way: {"compute": [0.1], "gather": [0.01], "reduce": [0.02], "exchange": [0.3], "step": [step * factor]}
            for way, step in (("gloo", 0.4), ("offpath, overlap", 0.2))
        }
        return {"times": times, "model_bytes": 8, "largest_difference": verified}

    first, second = training_sharded.rows({"nodes": 2}, [launch(1), launch(3), launch(2)], 0.0)
    assert first["gain"] == 1 and second["gain"] == 2 and second["verified"]
    assert second["step_s"] == pytest.approx(0.4) and second["step_max_s"] == pytest.approx(0.6)
    assert second["best_s"] == pytest.approx(0.3)
    assert not training_sharded.rows({}, [launch(1, verified=0.1)], 0.0)[0]["verified"]


@pytest.mark.nightly
@pytest.mark.machine
@requires_root
def test_a_sharded_model_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{sharding_interpreter().rpartition('/')[0]}:/usr/bin:/bin:/usr/sbin:/sbin")
    small = ["--parts", "sharded", "--runs", "1", "--rounds", "2", "--rate", "1gbit"]
    result = offpath("bench", "training", *small, "--json", str(tmp_path / "out"))
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "out").read_text())["sharded"]
    assert len(rows) == 4 and all(row["verified"] and row["step_s"] > 0 for row in rows)
