# SPDX-License-Identifier: BSD-3-Clause
"""What the PETSc plug-in runs is what `offpath split` derives: operations of each side, and what goes between them."""

import re

import pytest
from offpath.split import Costs, Machine, describe, load, split_program
from petsc_support import SOLVERS, plugin, run, solve_program

VARIANTS = {"offpath_pipecg": "pipecg", "offpath_cg": "pcg"}
LINE = re.compile(r"Offpath: the host (posts|does): (.*)")
UPDATE_OR_DOT = re.compile(r"([\w']+) = (.+)")


def split_of(solver: str) -> dict:
    """What `offpath split VARIANT --json` writes."""
    oplist = load(VARIANTS[solver])
    costs = Costs(oplist, Machine(), rows=10**6, nonzeros_per_row=27)
    return describe(split_program(oplist, costs), costs)


def iteration_of(solver: str) -> dict[str, list[str]]:
    """The operations that the plug-in posts to the service and does itself in the third iteration."""
    argv = [solve_program(), *plugin(), "-ksp_type", solver, "-pc_type", "none", "-ksp_max_it", "6"]
    argv += ["-ksp_norm_type", "natural", "-info", ":ksp"]
    lines = LINE.findall(run(1, argv).stdout)
    posted = [text for kind, text in lines if kind == "posts"]
    done = [text for kind, text in lines if kind == "does"]
    assert len(posted) > 3
    return {"dpu": posted[3].split("; "), "host": done[2].split("; ") if done else []}


def canonical(operation: dict) -> str | None:
    """As the plug-in writes it; nothing for what is no vector work."""
    if operation["op"] == "dot":
        return f"{operation['target']} = ({', '.join(sorted((operation['x'], operation['y'])))})"
    if operation["op"] != "update":
        return None
    terms = []
    for term in operation["terms"]:
        sign = {1.0: "", -1.0: "-"}[term["number"]]
        terms.append(f"{sign}{term['scalar']} * {term['vector']}" if term["scalar"] else sign + term["vector"])
    return f"{operation['target']} = {' + '.join(sorted(terms))}"


def plain(text: str) -> str:
    """A line of the plug-in with buffers left out and operands in order."""
    target, expression = text.replace("'", "").split(" = ")
    if expression.startswith("("):
        return f"{target} = ({', '.join(sorted(expression[1:-1].split(', ')))})"
    return f"{target} = {' + '.join(sorted(expression.split(' + ')))}"


def operations(program: dict, side: str) -> list[dict]:
    return [each for step in program["sides"][side] for each in step.get("operations", ())]


def is_vector_work(text: str, program: dict) -> bool:
    found = UPDATE_OR_DOT.fullmatch(text)
    return bool(found) and (found[1].replace("'", "") in program["vectors"] or found[2].startswith("("))


def vector_work(lines: list[str], program: dict) -> set[str]:
    return {plain(text) for text in lines if is_vector_work(text, program)}


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_service_runs_what_split_gives_to_the_dpu(solver):
    program, iteration = split_of(solver), iteration_of(solver)
    expected = {canonical(each) for each in operations(program, "dpu")} - {None}
    assert vector_work(iteration["dpu"], program) == expected


def test_the_host_runs_the_updates_that_split_leaves_to_it():
    program, iteration = split_of("offpath_pipecg"), iteration_of("offpath_pipecg")
    expected = {canonical(each) for each in operations(program, "host")} - {None}
    assert vector_work(iteration["host"], program) == expected


@pytest.mark.parametrize("solver", SOLVERS)
def test_statements_come_after_what_they_read(solver):
    """In the order of split wherever one statement reads what another writes."""
    program, iteration = split_of(solver), iteration_of(solver)
    order = [plain(text) for text in iteration["dpu"] if is_vector_work(text, program)]
    expected = [canonical(each) for each in operations(program, "dpu") if canonical(each)]
    for index, text in enumerate(expected):
        target, read = text.split(" = ")[0], text.split(" = ")[1]
        for later in expected[index + 1 :]:
            reads_it = re.search(rf"\b{target}\b", later.split(" = ")[1])
            changes_it = re.search(rf"\b{later.split(' = ')[0]}\b", read)
            if reads_it or changes_it:
                assert order.index(text) < order.index(later)


@pytest.mark.parametrize("solver", SOLVERS)
def test_vectors_go_between_the_sides_as_split_says(solver):
    program, iteration = split_of(solver), iteration_of(solver)
    lines = [text for text in iteration["dpu"] if is_vector_work(text, program)]
    written = {text.split(" = ")[0] for text in lines}
    read = {name for text in lines for name in re.findall(r"[a-z_]+'?", text.split(" = ")[1])}
    received = {name.replace("'", "") for name in read - written} & set(program["vectors"])
    exchanged = {each["name"]: each for each in program["exchanges"] if each["kind"] == "vector"}
    assert received == {name for name, each in exchanged.items() if (each["from"], each["to"]) == ("host", "dpu")}
    assert all(each["from"] == "host" for each in exchanged.values())
    # Two copies where nobody waits: names change from one iteration to the next. One where the writer waits.
    argv = [solve_program(), *plugin(), "-ksp_type", solver, "-pc_type", "none", "-ksp_max_it", "6", "-info", ":ksp"]
    posted = [text for kind, text in LINE.findall(run(1, argv).stdout) if kind == "posts"][2:5]
    for name, each in exchanged.items():
        copies = {found for text in posted for found in re.findall(rf"(?<![\w']){name}'?(?![\w'])", text)}
        assert len(copies) == (1 if each["waits"] else each["buffers"])


def test_sums_and_scalars_are_those_of_split():
    program, iteration = split_of("offpath_pipecg"), iteration_of("offpath_pipecg")
    sums = next(text for text in iteration["dpu"] if text.startswith("sum "))
    reduced = [name for step in program["sides"]["dpu"] if step["step"] == "reduce" for name in step["names"]]
    assert sums == f"sum {', '.join(reduced)}"
    before = {"gamma": 0.7, "gamma_old": 1.3, "delta": 2.9, "alpha": 0.6}
    expected = dict(before)
    for each in operations(program, "dpu"):
        if each["op"] == "scalar":
            expected[each["target"]] = eval(each["expression"], {}, expected)  # arithmetic, of our own list
    got = {name.replace("-", "minus_"): value for name, value in before.items()}
    for text in iteration["dpu"][iteration["dpu"].index(sums) + 1 :]:
        target, expression = text.replace("-alpha", "minus_alpha").split(" = ")
        got[target] = eval(expression, {}, got)
    assert {name: got[name] for name in expected} == pytest.approx(expected)
    assert got["minus_alpha"] == -got["alpha"]
