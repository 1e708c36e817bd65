# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of trainings: what it makes of launches, and at length that it runs."""

import json
import tempfile

import pytest
from conftest import assert_one_line_error, captured, offpath, requires_root, succeeded
from offpath.base.errors import UserError
from offpath.bench import training_epochs, training_steps
from offpath.bench.suite import training
from offpath.bench.training_epochs import Where, rows
from torch_support import environment, interpreter, run_ranks, sharding_interpreter

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


BANNER = "--------\nmpirun detected that one or more processes exited with non-zero status\n--------\n"
TRACE = "Traceback (most recent call last):\n  File \"x.py\", line 1\n"


@pytest.mark.parametrize(
    "out, err, first",
    [
        ("", f"a warning\n{TRACE}torch.OutOfMemoryError: no memory\n{TRACE}RuntimeError: peer\n{BANNER}",
         "torch.OutOfMemoryError: no memory"),
        ("", f"[rank0]: {TRACE}[rank0]: ValueError: of one\n{BANNER}", "ValueError: of one"),
        ("", f"offpath: no service. Start it.\n{TRACE}RuntimeError: later\n", "offpath: no service. Start it."),
        ("half a line", "", "half a line"),
        ("", "", "it said nothing"),
    ],
)  # fmt: skip
def test_a_launch_that_fails_says_its_first_error_and_where_the_rest_is(out, err, first, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(UserError) as said:
        training_epochs.said(1, out, err)
    (file,) = tmp_path.iterdir()
    assert str(said.value) == f"A launch of the training failed: {first} (all that it said: {file})."
    assert file.read_text().strip() == (out or err).strip()


@pytest.mark.nightly
@pytest.mark.machine
@requires_root
@pytest.mark.parametrize("model, shape", [("resnet20", "cifar10"), ("shufflenet", "tiny-imagenet")])
def test_it_runs(model, shape, tmp_path):
    interpreter()
    small = [
        "--parts", "epochs", "--runs", "1", "--rounds", "1", "--pictures", "32", "--model", model, "--shape", shape
    ]
    places = ["--placement", "cores,dpu,node", "--epoch-nodes", "1,2", "--rate", "1gbit"]
    succeeded(offpath("bench", "training", *small, *places, "--json", str(tmp_path / "out")))
    found = json.loads((tmp_path / "out").read_text())["epochs"]
    assert len(found) == 3 * 2 * len(WAYS) and all(row["verified"] and row["epoch_s"] > 0 for row in found)


def test_gains_of_sharded_models_are_of_one_launch_each():
    def launch(factor, verified=0.0):
        times = {
            way: {"compute": [0.1], "gather": [0.01], "reduce": [0.02], "exchange": [0.3], "step": [step * factor]}
            for way, step in (("gloo", 0.4), ("offpath, overlap", 0.2))
        }
        return {"times": times, "model_bytes": 8, "largest_difference": verified}

    first, second = training_steps.of_sharded({"nodes": 2}, [launch(1), launch(3), launch(2)], 0.0)
    assert first["gain"] == 1 and second["gain"] == 2 and second["verified"]
    assert second["step_s"] == pytest.approx(0.4) and second["step_max_s"] == pytest.approx(0.6)
    assert second["best_s"] == pytest.approx(0.3)
    assert not training_steps.of_sharded({}, [launch(1, verified=0.1)], 0.0)[0]["verified"]


@pytest.mark.nightly
@pytest.mark.machine
@pytest.mark.parametrize("late", ["all", "gather", "reduce"])
def test_what_was_not_communicated_is_a_difference(late):
    small = ("--layers", "2", "--width", "64", "--rounds", "2")
    said = run_ranks("torch_late.py", 2, late, *small, python=sharding_interpreter())
    found = json.loads(said[0].splitlines()[-1])
    assert training_steps.of_sharded({}, [found], 0.0)[0]["verified"] == (late == "all")


NO_NUMBERS = """
import math
import torch, torch.distributed as dist
from offpath.torch.training_step import difference, largest_of_all
right, none = torch.ones(3), torch.tensor([1.0, math.nan, 1.0])
assert difference([right, right], [right, right]) == 0
assert all(math.isnan(difference(ours, [right, right])) for ours in ([right, none], [none, right]))
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
print([largest_of_all([0.0, each, 0.0]) for each in (0.5, math.nan, math.inf)])
"""


@pytest.mark.machine
def test_what_is_no_number_is_a_difference():
    command = [interpreter(), "-c", NO_NUMBERS]
    done = captured(command, env=environment())
    assert done.stdout == "[0.5, inf, inf]\n", done.stderr


@pytest.mark.nightly
@pytest.mark.machine
@requires_root
def test_a_sharded_model_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{sharding_interpreter().rpartition('/')[0]}:/usr/bin:/bin:/usr/sbin:/sbin")
    small = ["--parts", "sharded", "--runs", "1", "--rounds", "2", "--rate", "1gbit"]
    succeeded(offpath("bench", "training", *small, "--json", str(tmp_path / "out")))
    rows = json.loads((tmp_path / "out").read_text())["sharded"]
    assert len(rows) == 4 and all(row["verified"] and row["step_s"] > 0 for row in rows)
