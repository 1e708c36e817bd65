# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath split --schedule` writes gives the bits of the list, whenever the DPU gets round to its programs."""

import itertools
import operator
import re

import numpy
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies
from offpath.base.errors import UserError
from offpath.split import load, variants
from offpath.split.schedule import schedule
from split_interpreter import run_list
from split_support import ROWS, machines, operators, oplists, program_of

STEPS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}
STEPS |= {"copy": lambda left, _: left, "sqrt": lambda left, _: numpy.sqrt(left)}


class Process:
    """Runs a schedule. `far`: the DPU has vectors of its own. `late`: a program runs only when it is waited for."""

    def __init__(self, text: str, applied: dict, b, x, far: bool, late):
        self.applied, self.far, self.late = applied, far, late
        self.sections: dict[str, list[list[str]]] = {"": []}
        title = ""
        for line in text.splitlines()[1:]:
            if re.match(r"setup|turn ", line):
                title = line
                self.sections[title] = []
            else:
                self.sections[title].append(line.split())
        head = self.sections[""]
        self.taken = [words[1] for words in head if words[0] == "take"]
        self.result = next(words[1] for words in head if words[0] == "result")
        values = {words[1]: numpy.float64(words[2]) for words in head if words[0] == "scalar"}
        self.scalars = {"here": values, "there": dict(values)}
        names = [words[1] for words in head if words[0] == "vector"]
        vectors = {name: numpy.full(ROWS, numpy.nan) for name in names} | {"b": b.copy(), "x": x.copy()}
        self.vectors = {"here": vectors, "there": dict(vectors) if far else vectors}
        self.pending: list[list[list[str]]] = []

    def run(self, title: str) -> None:
        lines = iter(self.sections[title])
        for words in lines:
            here = self.vectors["here"]
            if words[0] in ("here", "there"):
                program = list(itertools.takewhile(lambda line: line != ["end"], lines))
                self.post(program) if words[0] == "there" else self.work(program, "here")
            elif words[0] == "wait":
                self.wait()
                for name in self.taken:
                    self.scalars["here"][name] = self.scalars["there"][name]
            elif words[0] in ("precondition", "matvec"):
                here[words[1]] = self.applied["A" if words[0] == "matvec" else "B"](here[words[2]])

    def post(self, program) -> None:
        for words in program:
            if words[0] == "give":
                assert not self.pending, "scalars are the running program's"
                self.scalars["there"].update({name: self.scalars["here"][name] for name in words[1:]})
        self.pending.append(program)
        if not self.late():
            self.wait()

    def wait(self) -> None:
        for program in self.pending:
            self.work(program, "there")
        self.pending = []

    def work(self, program, side: str) -> None:
        vectors, scalars = self.vectors[side], self.scalars[side]
        lists = {words[0]: words[1:] for words in program if words[0] in ("in", "out", "sum", "give")}
        for name in lists.get("in", []):
            vectors[name] = self.vectors["here"][name]
        with numpy.errstate(all="ignore"):
            for words in [each for each in program if each[0] in STEPS]:
                scalars[words[1]] = STEPS[words[0]](scalars[words[2]], scalars[words[3]])
            dots = {}
            for words in program:
                if words[0] == "update":
                    terms = zip(words[2::2], words[3::2], strict=True)
                    vectors[words[1]] = sum((scalars[s] * vectors[v] for s, v in terms), start=numpy.zeros(ROWS))
                elif words[0] == "dot":
                    dots[words[1]] = vectors[words[2]] @ vectors[words[3]]
            scalars.update(dots)  # at the end of the pass
            for words in [each[1:] for each in program if each[0] == "after"]:
                scalars[words[1]] = STEPS[words[0]](scalars[words[2]], scalars[words[3]])
        for name in lists.get("out", []):
            self.vectors["here"][name] = vectors[name]

    def solution(self):
        return self.vectors["there" if self.result == "dpu" else "here"]["x"]


def assert_same_solution(program, turns: int, far: bool, late) -> None:
    applied, _ = operators(1)
    b, guess = numpy.random.default_rng(5).standard_normal(ROWS), numpy.full(ROWS, 0.25)
    process = Process(schedule(program), applied, b, guess, far, late)
    process.run("setup")
    for turn in range(turns):
        process.run(f"turn {turn % 2}")
    process.wait()
    expected = next(itertools.islice(run_list(program.oplist, applied, b, guess), turns - 1, None))["x"]
    assert process.solution().tobytes() == expected.tobytes()


@pytest.mark.parametrize("far", (False, True))
@pytest.mark.parametrize("late", (False, True))
@pytest.mark.parametrize("name", sorted(set(variants()) - {"amgpcg"}))
def test_shipped_variants(name, late, far):
    for turns in (1, 2, 7):
        assert_same_solution(program_of(load(name))[0], turns, far, lambda: late)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(oplists(), machines(), strategies.integers(1, 5), strategies.booleans(), strategies.randoms())
def test_any_list(oplist, machine, turns, far, random):
    program, _ = program_of(oplist, machine)
    try:
        schedule(program)
    except UserError:
        assume(False)  # the DPU's operators, or x on both sides
    assert_same_solution(program, turns, far, lambda: random.random() < 0.5)
