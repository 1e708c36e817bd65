# SPDX-License-Identifier: BSD-3-Clause
"""Onloading (-ksp_offpath_leaders): a node's ranks hand their vectors to few of them, and nothing else changes."""

import uuid

import pytest
from conftest import requires_root
from offpath.lab import Lab
from petsc_support import (
    LIMIT_S,
    SOLVERS,
    assert_same_history,
    by_service,
    krylov_program,
    plugin,
    residuals,
    results,
    run,
    solve_program,
    solvers_of,
)


def krylov(*arguments: str) -> list[str]:
    pairs = ",".join(f"{theirs},{ours}" for ours, theirs in SOLVERS.items())
    return [
        krylov_program(),
        *plugin(),
        "-rounds",
        "2",
        "-pc_type",
        "jacobi",
        "-solvers",
        pairs,
        "-ksp_view",
        *arguments,
    ]


def assert_like_petsc(result) -> None:
    solvers = solvers_of(result)
    for theirs, ours in zip(solvers[::2], solvers[1::2], strict=True):
        assert_same_history(ours["residual_history"], theirs["residual_history"])
        assert ours["true_residual"] == pytest.approx(theirs["true_residual"], rel=1e-3)


@pytest.mark.grid(2)
@pytest.mark.parametrize(
    ("ranks", "leaders", "led"), [(1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 1, 4), (4, 2, 2), (4, 9, 1)]
)
def test_results_are_those_of_petsc(ranks, leaders, led):
    result = run(ranks, krylov("-grid", "9", "-ksp_offpath_leaders", str(leaders)))
    assert_like_petsc(result)
    assert by_service(result)
    assert (f"one leader for {led} ranks" in result.stdout) == (led > 1)


@pytest.mark.grid(1)
@pytest.mark.parametrize("phi", ("0.3", "auto"))
def test_leaders_multiply_the_rows_of_all(phi):
    result = run(3, krylov("-grid", "9", "-ksp_offpath_leaders", "1", "-ksp_offpath_phi", phi))
    assert_like_petsc(result)
    assert phi == "auto" or f"done by the service: {phi}" in result.stdout


def test_ranks_without_rows():
    argv = [solve_program(), "-rows", "3", "-pc_type", "none", "-ksp_monitor"]
    for solver, theirs in SOLVERS.items():
        ours = run(4, [*argv, *plugin(), "-ksp_type", solver, "-ksp_offpath_leaders", "1"])
        expected = residuals(run(4, [*argv, "-ksp_type", theirs]))
        assert residuals(ours)[:2] == pytest.approx(expected[:2])


def test_repeated_solves_with_a_guess():
    argv = [solve_program(), *plugin(), "-ksp_type", "offpath_pipecg", "-guess", "-solves", "3", "-ksp_offpath_leaders"]
    led, alone = results(run(3, [*argv, "1"])), results(run(3, [*argv, "0"]))
    assert [reason for _, reason, _ in led] == [reason for _, reason, _ in alone]
    assert all(true < 1e-6 for _, _, true in led) and len(led) == 3


def test_without_a_service_or_memory_the_host_does_it():
    argv = [solve_program(), *plugin(), "-ksp_type", "offpath_pipecg", "-ksp_view", "-info", ":ksp"]
    for env in ({"OFFPATH_SERVICE_PATH": "/nowhere/offpathd"}, {"OFFPATH_SHARED_MEMORY_BYTES": "8192"}):
        result = run(3, [*argv, "-ksp_offpath_leaders", "1"], env)
        assert results(result)[0][1].startswith("CONVERGED") and not by_service(result)
        assert "Offpath: the host does the vector work" in result.stdout


@pytest.mark.grid(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_service_that_dies_ends_the_solve_of_all(solver, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    argv = [solve_program(), *plugin(), "-ksp_type", solver, "-pc_type", "none", "-kill", "5", "-service", str(folder)]
    result = run(3, [*argv, "-ksp_offpath_leaders", "1"], {"OFFPATH_RUNTIME_DIR": str(folder)})
    assert result.returncode != 0
    assert "Offpath: vector operations of the solver failed" in result.stderr


def test_a_negative_number_is_refused():
    argv = [solve_program(), *plugin(), "-ksp_type", "offpath_cg", "-ksp_offpath_leaders", "-1"]
    assert run(1, argv).returncode != 0


@requires_root
def test_a_leader_on_each_of_two_nodes():
    with Lab(nodes=2, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:
        argv = krylov("-grid", "9", "-ksp_offpath_leaders", "1")
        result = lab.mpirun("openmpi", 2, argv, offload=True, env={"OFFPATH_ENABLE": "0"}, timeout=LIMIT_S)
    assert_like_petsc(result)
    assert "team on 2 node(s)), one leader for 2 ranks" in result.stdout
