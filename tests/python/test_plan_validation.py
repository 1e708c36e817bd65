# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench plan`: what counts as the measurement, as an error, and as a right verdict."""

import pytest
from offpath.bench.plan_cases import Case, summarize


def case(predicted, host, dpu, slowed=()):
    return Case("ialltoall 4 MiB", 2, "1gbit", 1.0, *predicted, list(host), list(dpu), list(slowed))


def test_the_median_launch_counts():
    found = case((110, 80), host=(100, 300, 90), dpu=(400, 100, 90), slowed=(1.0, 1.02, 3.0))
    assert (found.measured_host, found.measured_dpu, found.slowed) == (100, 100, 1.02)
    assert found.error == pytest.approx(-0.2)
    assert found.host_error == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("predicted", "measured", "right"),
    [
        ((120, 100), (130, 100), True),
        ((100, 120), (130, 100), False),
        ((100, 101), (130, 100), False),
        ((100, 120), (104, 100), True),  # hardly any gain: either verdict is right
        ((100, 120), (100, 110), True),
    ],
)
def test_a_verdict_is_right_if_it_says_which_path_wins(predicted, measured, right):
    assert case(predicted, measured[:1], measured[1:]).right is right


@pytest.mark.parametrize(
    ("predicted", "measured", "same"),
    [
        ((120, 100), (130, 100), True),
        ((104, 100), (130, 100), False),
        ((103, 100), (98, 100), True),
        ((100, 106), (100, 104), False),
    ],
)
def test_words_are_those_of_plan(predicted, measured, same):
    assert case(predicted, measured[:1], measured[1:]).same_words is same


def test_the_worst_case_is_told():
    found = summarize([case((100, 100), [100], [100]), case((100, 100), [100], [80]), case((100, 100), [80], [99])])
    assert found["worst_error"] == pytest.approx(0.25)
    assert found["median_error"] == pytest.approx(100 / 99 - 1)
    assert found["wrong_verdicts"] == found["other_words"] == 2
