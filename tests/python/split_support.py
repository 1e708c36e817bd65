# SPDX-License-Identifier: BSD-3-Clause
"""Operation lists and matrices that several tests of the split use."""

import numpy
from hypothesis import strategies
from offpath.split import Costs, Machine, Side, parse, split_program

ROWS = 48


def operators(seed: int) -> tuple[dict, numpy.ndarray]:
    """A dense random positive definite matrix; B: Jacobi, S and C: smoother and coarse-grid correction."""
    random = numpy.random.default_rng(seed)
    basis, _ = numpy.linalg.qr(random.standard_normal((ROWS, ROWS)))
    matrix = basis @ numpy.diag(numpy.linspace(1, 50, ROWS)) @ basis.T
    matrix = (matrix + matrix.T) / 2
    scale = 1 / numpy.diag(matrix)
    largest = numpy.linalg.eigvalsh(numpy.sqrt(scale)[:, None] * matrix * numpy.sqrt(scale))[-1]
    prolong = numpy.kron(numpy.eye(ROWS // 3), numpy.ones((3, 1)))
    coarse = numpy.linalg.inv(prolong.T @ matrix @ prolong)
    return {
        "A": lambda v: matrix @ v,
        "B": lambda v: scale * v,
        "S": lambda v: scale / largest * v,
        "C": lambda v: prolong @ (coarse @ (prolong.T @ v)),
    }, matrix


def same(one: dict, other: dict) -> bool:
    """Bit for bit, with NaN equal to NaN."""
    return one.keys() == other.keys() and all(
        numpy.asarray(one[name]).tobytes() == numpy.asarray(other[name]).tobytes() for name in one
    )


@strategies.composite
def oplists(draw):
    """Any list the format allows: every name has a value in setup, so statements may come in any order."""
    vectors = [f"v{i}" for i in range(draw(strategies.integers(2, 6)))] + ["x"]
    scalars = [f"s{i}" for i in range(draw(strategies.integers(1, 4)))]
    vector, scalar = strategies.sampled_from([*vectors, "b"]), strategies.sampled_from(scalars)
    setup = [f"{name} = {0.1 * (i + 1):.1f} * b" for i, name in enumerate(vectors)]
    setup += [f"{name} = 0.{i + 1}" for i, name in enumerate(scalars)]
    targets = draw(strategies.permutations([*vectors, *scalars]))
    kept = draw(strategies.integers(3, len(targets)))
    targets = list(dict.fromkeys([*targets[:kept], "x", *vectors[:2]]))
    applications = [draw(strategies.sampled_from(vectors[:2])), None]
    applications[1] = vectors[1] if applications[0] == vectors[0] else vectors[0]
    lines = []
    for name in targets:
        if name in applications:
            lines.append(f"{name} = {'BA'[applications.index(name)]} {draw(vector)}")
        elif name in vectors:
            lines.append(f"{name} = {draw(vector)} - {draw(scalar)} * {draw(vector)} + 0.5 * {draw(vector)}")
        elif draw(strategies.booleans()):
            lines.append(f"{name} = ({draw(vector)}, {draw(vector)})")
        else:
            lines.append(f"{name} = {draw(scalar)} / (2 + {draw(scalar)} * {draw(scalar)})")
        if draw(strategies.integers(0, 9)) == 0:
            lines.append(f"test {draw(scalar)}")
    head = ["matrix A", "preconditioner B", "vectors " + " ".join(vectors[:-1])]
    return parse("\n".join([*head, "setup", *setup, "iterate", *lines]))


@strategies.composite
def machines(draw):
    rate = strategies.sampled_from([1e9, 4e9, 2e10])
    return Machine(
        Side(draw(rate)), Side(draw(rate)), reduction_s=draw(strategies.sampled_from([0.0, 1e-5, 1e-2])),
        exchange_latency_s=draw(strategies.sampled_from([0.0, 1e-6, 1e-4])),
    )  # fmt: skip


def program_of(oplist, machine=None, rows=100_000):
    costs = Costs(oplist, machine or Machine(), rows, 27)
    return split_program(oplist, costs), costs
