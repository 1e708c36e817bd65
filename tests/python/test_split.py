# SPDX-License-Identifier: BSD-3-Clause
"""The split itself: shipped variants converge, run the same when split, and are split as derived on paper."""

import itertools

import numpy
import pytest
from offpath.split import Costs, Machine, Side, compare, load, parse, split_program, variants
from offpath.split.dominant import DPU, HOST, dominant_path
from offpath.split.prediction import predict
from offpath.split.steps import Pass, Receive
from split_interpreter import run_list, run_split
from split_support import ROWS, operators, program_of, same


@pytest.mark.parametrize("name", variants())
@pytest.mark.parametrize("seed", [1, 2])
def test_variants_converge_and_the_split_gives_the_same_bits(name, seed):
    applied, matrix = operators(seed)
    b = numpy.random.default_rng(seed + 100).standard_normal(ROWS)
    guess = numpy.full(ROWS, 0.25)
    program, _ = program_of(load(name))
    whole, split = run_list(program.oplist, applied, b, guess), run_split(program, applied, b, guess)
    for one, other in itertools.islice(zip(whole, split, strict=True), ROWS):
        assert same(one, other)
        residual = numpy.linalg.norm(b - matrix @ other["x"]) / numpy.linalg.norm(b)
        if residual < 1e-8:
            return
    pytest.fail(f"seed {seed}: residual {residual} after {ROWS} iterations")


def on_host(program) -> set[str]:
    return {each.target or each.text for i, each in enumerate(program.oplist.iteration) if program.sides[i] == HOST}


def exchanged(program) -> dict[str, set[str]]:
    return {side: {each.name for each in program.exchanges if each.source == side} for side in (HOST, DPU)}


def test_pipecg_is_split_as_derived():
    program, _ = program_of(load("pipecg"))
    assert on_host(program) == {"m", "n", "z", "w", "test gamma"}
    assert exchanged(program) == {HOST: {"w", "m"}, DPU: {"alpha", "beta", "gamma"}}
    assert program.end == ("x",)
    assert {each.name: each.buffers for each in program.exchanges if each.source == HOST} == {"w": 2, "m": 2}
    assert not any(each.waits for each in program.exchanges)


def test_plain_cg_is_a_chain_that_leaves_only_the_solution_to_the_dpu():
    program, _ = program_of(load("pcg"))
    assert {each.target for i, each in enumerate(program.oplist.iteration) if program.sides[i] == DPU} == {"x"}
    assert exchanged(program) == {HOST: {"p", "alpha"}, DPU: set()}
    assert all(each.waits for each in program.exchanges)  # nothing comes back, so only waiting bounds the host


def test_weights_decide_between_two_ways_back():
    """Chronopoulos-Gear: from A to B by the update of s, or by the dot product and its reduction."""
    cheap, _ = program_of(load("cgcg"), Machine(reduction_s=0))
    dear, _ = program_of(load("cgcg"), Machine(reduction_s=1.0))
    assert on_host(cheap) == {"u", "w", "s", "r", "test gamma"}
    assert {"delta", "alpha"} <= on_host(dear) and "s" not in on_host(dear)


def test_the_dominant_path_is_the_heaviest():
    text = """matrix A
preconditioner B
vectors u p q r
setup
 r = b
iterate
 u = B r
 p = 2 * u
 d = (u, p)
 q = p + u
 r = A q
 x = x + d * q
"""
    oplist = parse(text)
    weights = dict.fromkeys(range(6), 1.0)
    assert dominant_path(oplist, weights, 0, 4) == [0, 1, 3, 4]
    assert dominant_path(oplist, weights | {2: 9.0}, 0, 4) == [0, 1, 3, 4]  # d leads nowhere
    assert dominant_path(oplist, weights, 4, 0) == [4, 0]  # through r, one iteration on
    assert dominant_path(oplist, weights, 5, 0) == []


def test_fused_passes_of_pipecg():
    program, costs = program_of(load("pipecg"), Machine(shared_bytes_per_s=12e9))
    labels = {
        side: [
            [program.oplist.iteration[i].target for i in step.statements] for step in steps if isinstance(step, Pass)
        ]
        for side, steps in program.steps.items()
    }
    assert ["z", "w"] in labels[HOST]
    assert ["q", "s", "p", "x", "u", "r", "gamma"] in labels[DPU]
    assert program.steps[DPU].index(Receive("w")) > next(
        i for i, step in enumerate(program.steps[DPU]) if isinstance(step, Pass) and len(step.statements) > 1
    )
    found = predict(program, costs)
    assert found.bytes_per_row == {HOST: 2 * 344 + 40, DPU: 14 * 8 + 16}


def test_predictions_in_closed_form():
    """The host alone adds up; the split is the longer side; a reduction hides in PIPECG and not in PCG."""
    rows, rate, wait = 1_000_000, 10e9, 5e-3
    machine = Machine(Side(rate), Side(rate), exchange_latency_s=0, reduction_s=wait)
    second = rows / rate
    program, costs = program_of(load("pcg"), machine, rows)
    alone = compare(program, costs)
    traffic = 2 * 344 + 3 * 24 + 2 * 16
    assert alone.alone_blocking.total_s == pytest.approx(traffic * second + 2 * wait)
    assert alone.alone_overlapped.total_s == pytest.approx(traffic * second + 2 * wait)
    program, costs = program_of(load("pipecg"), machine, rows)
    found = compare(program, costs)
    traffic = 2 * 344 + 8 * 24 + 2 * 16
    assert found.alone_blocking.total_s == pytest.approx(traffic * second + wait)
    assert found.alone_overlapped.total_s == pytest.approx(traffic * second)
    assert found.split.total_s == pytest.approx((2 * 344 + 40) * second)
    slow = Machine(Side(rate), Side(rate / 100), exchange_latency_s=0)
    program, costs = program_of(load("pipecg"), slow, rows)
    found = compare(program, costs).split
    assert found.total_s == pytest.approx(found.busy_s[DPU], rel=0.2)
    bound = Machine(Side(rate), Side(rate), shared_bytes_per_s=rate)
    program, costs = program_of(load("pipecg"), bound, rows)
    found = compare(program, costs).split
    assert found.total_s == found.roof_s == pytest.approx(sum(found.bytes_per_row.values()) * second)


def test_balance_gives_back_what_the_dpu_is_too_slow_for():
    machine = Machine(Side(12e9), Side(1e9))
    oplist = load("pipecg")
    costs = Costs(oplist, machine, 1_000_000, 27)
    plain, balanced = split_program(oplist, costs), split_program(oplist, costs, balanced=True)
    assert on_host(plain) < on_host(balanced)
    found = compare(plain, costs), compare(balanced, costs)
    assert found[0].split.total_s > found[0].alone_overlapped.total_s > found[1].split.total_s
    equal = Costs(oplist, Machine(), 1_000_000, 27)
    assert split_program(oplist, equal, balanced=True) == split_program(oplist, equal)


def test_measured_seconds_win_over_bytes():
    oplist = load("pipecg")
    side = Side(1e9, {"update": 2e-9, "A": 5e-9, "q": 7e-9})
    costs = Costs(oplist, Machine(host=side), rows=1000, nonzeros_per_row=27)
    index = {each.target: i for i, each in enumerate(oplist.iteration)}
    assert costs.seconds([index["n"]], HOST) == pytest.approx(5e-6)
    assert costs.seconds([index["q"]], HOST) == pytest.approx(7e-6)
    assert costs.seconds([index["gamma"]], HOST) == pytest.approx(16e-6)
    fused = costs.seconds([index["z"], index["w"]], HOST)
    assert fused == pytest.approx(4e-6 * 40 / 48)
