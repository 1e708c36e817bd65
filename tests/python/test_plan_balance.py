# SPDX-License-Identifier: BSD-3-Clause
"""What balancing can bring, with made-up loads; nothing is measured."""

import json

import pytest
from conftest import assert_one_line_error, offpath
from offpath.plan.balance import Loads

# Two ranks, three times as much on one of them, which is the other one later; 2 s that no load explains.
MOVING = Loads(8.0, [[3.0, 1.0], [1.0, 3.0]])


def test_a_load_that_moves_is_balanced_within_each_stretch():
    assert (MOVING.imbalance, MOVING.standing_imbalance) == pytest.approx((1.5, 1.0))
    assert MOVING.balanced_s() == pytest.approx(2 + 2 + 2)
    assert Loads(6.0, [[2.0, 2.0]] * 3).balanced_s() == pytest.approx(6.0)


def test_long_tasks_and_costly_ways_leave_less():
    assert MOVING.balanced_s(piece_s=0.5) == pytest.approx(6 + 2 * 0.25)
    assert MOVING.balanced_s(moved_s=0.4) == pytest.approx(6 + 2 * 0.2)
    assert MOVING.balanced_s(piece_s=100) == pytest.approx(8.0)  # never slower than it was: nothing moves


def written(folder, name, loads):
    file = folder / name
    file.write_text(json.dumps({"seconds": loads.seconds, "loads_s": loads.stretches}))
    return str(file)


def test_the_command_compares_with_what_was_measured(tmp_path):
    report = written(tmp_path, "amr.json", MOVING)
    balanced = written(tmp_path, "balanced.json", Loads(6.4, [[2.0, 2.0]] * 2))
    out = tmp_path / "out.json"
    done = offpath("plan", "balance", "--report", report, "--balanced", balanced, "--json", str(out))
    assert done.returncode == 0 and "the load moves" in done.stdout, done.stderr
    found = json.loads(out.read_text())
    assert found["gain_at_most"] == pytest.approx(8 / 6) and found["error"] == pytest.approx(6 / 6.4 - 1)


@pytest.mark.parametrize(
    "text",
    ["no json", "[]", '{"seconds": 1}', '{"seconds": 1, "loads_s": [[1, 2], [1]]}', '{"seconds": 0, "loads_s": [[1]]}',
     '{"seconds": NaN, "loads_s": [[1]]}', '{"seconds": 1, "loads_s": [[1, Infinity]]}'],
)
def test_what_is_no_report_is_one_line(tmp_path, text):
    file = tmp_path / "report.json"
    file.write_text(text)
    assert_one_line_error(offpath("plan", "balance", "--report", str(file)), "amr --json")
