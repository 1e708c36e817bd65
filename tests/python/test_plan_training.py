# SPDX-License-Identifier: BSD-3-Clause
"""What a training would gain, by numbers that can be done in the head."""

import json

import pytest
from conftest import assert_one_line_error, offpath
from offpath.plan import training
from offpath.plan.training import Epoch


@pytest.fixture(autouse=True)
def free_tasks(monkeypatch):
    monkeypatch.setattr(training, "TASK_S", 0.0)


def test_what_is_hidden_is_the_shorter_one():
    epoch = Epoch(batches=10, batches_s=20.0, validation_s=5.0, rest_s=75.0)
    found = training.predict(epoch)
    assert found == {"host": 100.0, "O-DA": 75.0 + 2.0 + 5.0, "O-MV": 95.0, "O-Hy": 75.0 + 2.0}
    slow = training.predict(epoch, cores=1, slower=5)
    assert slow["O-DA"] == 100.0 + 10.0 + 5.0 and slow["O-MV"] == 95.0 and slow["O-Hy"] == 125.0 + 10.0
    assert training.predict(epoch, cores=2, slower=5)["O-Hy"] == 75.0 + 10.0
    assert training.predict(epoch, cores=8, slower=40)["O-Hy"] == 200.0 + 80.0  # a validation is on one core


def test_a_link_carries_batches_and_weights():
    epoch = Epoch(10, batches_s=20.0, validation_s=5.0, rest_s=75.0, batches_bytes=100 * 10**6, weights_bytes=10**6)
    found = training.predict(epoch, link_bits_per_s=8e6)  # a megabyte per second
    assert found["O-DA"] == 100.0 + 12.0 + 5.0 and found["O-MV"] == 95.0 and found["O-Hy"] == 100.0 + 12.0
    assert training.predict(epoch, slower=20, link_bits_per_s=8e6)["O-MV"] == 101.0


def profile(tmp_path, **changes):
    row = {"epoch_s": 100.0, "batches": 10, "batches_s": 20.0, "validation_s": 5.0} | changes
    file = tmp_path / "epochs.json"
    file.write_text(json.dumps({"offpath_training": 1, "epochs": [row]}))
    return file


def test_the_command_says_the_best(tmp_path):
    out = tmp_path / "advice.json"
    result = offpath("train-advice", str(profile(tmp_path)), "--json", str(out))
    assert result.returncode == 0 and "O-Hy gains most" in result.stdout, result
    assert "25% of an epoch" in result.stdout and "1.33" in result.stdout
    assert json.loads(out.read_text())["measured"]["rest_s"] == 75.0
    nothing = offpath("train-advice", str(profile(tmp_path, batches_s=0.1, validation_s=0.0)))
    assert "Nothing to gain" in nothing.stdout
    far = offpath("train-advice", str(profile(tmp_path, batches_bytes=10**9)), "--link-rate", "50mbit")
    assert "O-MV gains most" in far.stdout, far


LINK = json.dumps({"offpath_training": 1, "epochs": [{
    "epoch_s": 1, "batches": 1, "batches_s": 1, "validation_s": 0, "batches_bytes": "many",
}]})  # fmt: skip


def test_what_is_no_profile(tmp_path):
    assert_one_line_error(offpath("train-advice", str(tmp_path / "none")), "cannot be read")
    for text in ("", "[]", '{"epochs": []}', '{"offpath_training": 1, "epochs": [{"epoch_s": -1}]}', LINK,
                 LINK.replace('"many"', "1").replace('"batches": 1', '"batches": Infinity')):  # fmt: skip
        (tmp_path / "bad").write_text(text)
        assert_one_line_error(offpath("train-advice", str(tmp_path / "bad")), "no profile of a training")
