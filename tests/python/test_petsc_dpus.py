# SPDX-License-Identifier: BSD-3-Clause
"""PETSc's solvers with their vectors on a DPU that is another machine: the same bits, and what crosses the link."""

import uuid

import pytest
from conftest import ROOT, captured, requires_root
from offpath.base.paths import paths
from offpath.lab import Lab
from petsc_support import (
    LIMIT_S,
    SOLVERS,
    by_service,
    krylov_program,
    plugin,
    residuals,
    results,
    run,
    solve_program,
    solvers_of,
)

DPU = ROOT / "tests" / "api" / "dpu.sh"  # a service that reaches its clients by an agent alone
HERE: dict[str, str] = {}
THERE = {"OFFPATH_DPU": f"exec:{DPU} {paths().service}"}
SAME_ORDER = {  # of additions, so the same bits
    "alone": (1, []),
    "two": (2, ["-pc_type", "bjacobi"]),
    "guesses": (2, ["-pc_type", "jacobi", "-guess", "-solves", "3", "-ksp_norm_type", "natural"]),
    "matrices": (2, ["-pc_type", "jacobi", "-solves", "3", "-next", "1", "-ksp_offpath_phi", "0.5"]),
    "later": (2, ["-solves", "3", "-later", " -ksp_offpath_phi 0.5 -ksp_offpath_leaders 1"]),
    "amg": (2, ["-pc_type", "gamg"]),
    "leaders": (3, ["-ksp_offpath_leaders", "1"]),
    "leaders-phi": (3, ["-ksp_offpath_leaders", "2", "-ksp_offpath_phi", "0.3"]),
    "iterate": (2, ["-ksp_monitor_true_residual"]),
}


@pytest.mark.grid(3)
@pytest.mark.parametrize("case", SAME_ORDER)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_bits_as_by_a_service_here(solver, case):
    ranks, options = SAME_ORDER[case]
    argv = [solve_program(), *plugin(), "-ksp_type", solver, "-ksp_monitor", "-ksp_view", *options]
    there = run(ranks, argv, THERE)
    assert by_service(there) and "DPU, where the vectors stay" in there.stdout, there.stdout
    here = run(ranks, argv, HERE)
    assert residuals(there) == residuals(here)
    assert results(there) == results(here)


@pytest.mark.grid(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_share_found_by_measurement(solver):
    argv = [krylov_program(), *plugin(), "-grid", "10", "-rounds", "2", "-pc_type", "jacobi", "-ksp_offpath_phi"]
    theirs, ours = solvers_of(run(2, [*argv, "auto", "-solvers", f"{SOLVERS[solver]},{solver}"], THERE))
    assert ours["true_residual"] == pytest.approx(theirs["true_residual"], rel=1e-3)


@pytest.mark.grid(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_dpu_that_dies_ends_the_solve_with_an_error(solver, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    argv = [solve_program(), *plugin(), "-ksp_type", solver, "-pc_type", "none", "-kill", "5", "-service", str(folder)]
    result = run(2, argv, THERE | {"OFFPATH_RUNTIME_DIR": str(folder)})
    assert result.returncode != 0
    assert "Offpath: vector operations of the solver failed" in result.stderr


@pytest.mark.parametrize("leaders", ("0", "1"))
def test_a_dpu_without_room_leaves_it_to_the_host(leaders, tmp_path):
    small = tmp_path / "small.sh"  # files of 256 MiB there: enough for segments, but not for what lies behind them
    small.write_text(f'#!/bin/bash\nulimit -f 262144\nexec {DPU} "$@"\n')
    small.chmod(0o755)
    argv = [solve_program(), *plugin(), "-ksp_type", "offpath_pipecg", "-ksp_view", "-info", ":ksp"]
    result = run(2, [*argv, "-ksp_offpath_leaders", leaders], {"OFFPATH_DPU": f"exec:{small} {paths().service}"})
    assert not by_service(result) and results(result)[0][2] < 1e-3
    assert "do not fit into the memory of a DPU" in result.stdout, result.stdout


def crossed(lab) -> list[tuple[int, int]]:
    """By DPU, the bytes that came from its host and went there, headers included."""
    out = []
    for dpu in lab.plan.dpus:
        words = captured(lab.inside(dpu.place, ["cat", "/proc/net/dev"])).stdout
        (line,) = [line.split() for line in words.splitlines() if line.strip().startswith(f"host{dpu.number}:")]
        out.append((int(line[1]), int(line[9])))
    return out


# Of an iteration, by row: m and w; p. And a share of the product: m, w, and this share of the rows back; p, and those.
ROW = {("offpath_pipecg", "0"): (16, 0), ("offpath_cg", "0"): (8, 0)}
ROW |= {("offpath_pipecg", "0.25"): (16, 2), ("offpath_cg", "0.25"): (8, 2)}


@requires_root
def test_only_what_the_host_has_made_crosses_the_link():
    """Two nodes with a DPU each; the difference of two runs is that of their iterations."""
    rows = 60000
    with Lab(nodes=2, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}", dpus=1, link_rate="2gbit") as lab:
        for (solver, phi), expected in ROW.items():
            bytes_of = {}
            for iterations in (10, 30):
                argv = [solve_program(), *plugin(), "-rows", str(rows), "-pc_type", "none", "-ksp_type", solver]
                argv += ["-ksp_max_it", str(iterations), "-ksp_view", "-ksp_offpath_phi", phi]
                before = crossed(lab)
                # The preloaded part stays out of it: only the solver talks to services.
                result = lab.mpirun("openmpi", 1, argv, offload=True, env={"OFFPATH_ENABLE": "0"}, timeout=LIMIT_S)
                assert results(result)[0][:2] == (iterations, "DIVERGED_ITS")
                assert "team on 2 node(s)" in result.stdout and "DPU, where the vectors stay" in result.stdout
                bytes_of[iterations] = [(i - j, o - p) for (i, o), (j, p) in zip(crossed(lab), before, strict=True)]
            for few, many in zip(bytes_of[10], bytes_of[30], strict=True):
                for way, per_row in enumerate(expected):
                    per_iteration = (many[way] - few[way]) / 20
                    print(f"{solver} phi {phi}", "to the host" if way else "to the DPU", per_iteration * 2 / rows)
                    # Headers; acknowledgements of what goes the other way; records, answers and signs of life.
                    least = per_row * rows / 2
                    assert least <= per_iteration <= least * 1.08 + sum(expected) * rows / 2 * 0.03 + 20000
