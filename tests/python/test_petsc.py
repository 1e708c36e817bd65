# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified PETSc programs with liboffpath_petsc.so: the residuals of PETSc's own solvers, and PETSc's own ends."""

import re
import uuid

import pytest
import real_programs
from conftest import requires_root
from offpath.lab import Lab
from offpath.launch import stats
from offpath.launch.local import local_mpirun
from petsc_support import (
    LIMIT_S,
    SHARED,
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

PRECONDITIONERS = {
    "none": ["-pc_type", "none"],
    "jacobi": ["-pc_type", "jacobi"],
    "bjacobi": ["-pc_type", "bjacobi", "-sub_pc_type", "icc"],
    "gamg": ["-pc_type", "gamg"],
    "boomeramg": ["-pc_type", "hypre", "-pc_hypre_type", "boomeramg"],
}


@pytest.mark.grid(3)
@pytest.mark.parametrize("preconditioner", PRECONDITIONERS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_residuals_of_an_example_of_petsc(solver, preconditioner, tmp_path):
    argv = [real_programs.petsc(tmp_path, "ex2.c"), "-m", "30", "-n", "30", "-ksp_monitor", "-ksp_view"]
    argv += PRECONDITIONERS[preconditioner]
    for ranks in (1, 4) if preconditioner == "jacobi" else (2,):
        ours = run(ranks, [*argv, *plugin(), "-ksp_type", solver])
        assert by_service(ours)
        assert_same_history(residuals(ours), residuals(run(ranks, [*argv, "-ksp_type", SOLVERS[solver]])))


@pytest.mark.grid(2)
@pytest.mark.parametrize("norm", ("preconditioned", "unpreconditioned", "natural", "none"))
@pytest.mark.parametrize("solver", SOLVERS)
def test_norms_guesses_and_repeated_solves(solver, norm):
    argv = [solve_program(), "-pc_type", "bjacobi", "-ksp_norm_type", norm, "-guess", "-solves", "3", "-ksp_monitor"]
    argv += ["-ksp_max_it", "9"] if norm == "none" else []
    ours = run(2, [*argv, *plugin(), "-ksp_type", solver])
    theirs = run(2, [*argv, "-ksp_type", SOLVERS[solver]])
    got, expected = results(ours), results(theirs)
    if norm != "none":  # PETSc's pipecg then counts one more
        assert [reason for _, reason, _ in got] == [reason for _, reason, _ in expected]
        assert_same_history(residuals(ours)[:5], residuals(theirs)[:5])
    assert len(got) == 3
    assert all(true < 1e-3 for _, _, true in got) or norm == "none"


def test_a_monitor_sees_the_iterate():
    argv = [solve_program(), "-pc_type", "jacobi", "-rows", "60", "-ksp_monitor_true_residual", "-ksp_max_it", "20"]
    expected = run(2, [*argv, "-ksp_type", "pipecg"]).stdout
    for solver in SOLVERS:
        got = run(2, [*argv, *plugin(), "-ksp_type", solver]).stdout
        number = re.compile(r"true resid norm (\S+)")
        norms = [list(map(float, number.findall(text)))[:20] for text in (got, expected)]
        assert len(norms[0]) == 20
        assert norms[0] == pytest.approx(norms[1], rel=1e-6)


@pytest.mark.grid(2)
@pytest.mark.parametrize("phi", ("0.3", "0.9", "auto"))
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_share_of_the_product_is_done_by_the_service(solver, phi):
    argv = [krylov_program(), *plugin(), "-grid", "10", "-rounds", "2", "-pc_type", "jacobi", "-ksp_view"]
    for ranks in (1, 3) if phi == "0.3" else (2,):
        result = run(ranks, [*argv, "-solvers", f"{SOLVERS[solver]},{solver}", "-ksp_offpath_phi", phi])
        theirs, ours = solvers_of(result)
        assert_same_history(ours["residual_history"], theirs["residual_history"])
        share = re.search(r"share of the product's rows done by the service: (\S+)", result.stdout)
        assert phi == "auto" or share[1] == phi


@pytest.mark.parametrize("solver", SOLVERS)
def test_another_matrix_has_a_share_of_its_own(solver):
    """Made like the one before: only which object it is tells them apart."""
    argv = [solve_program(), *plugin(), "-pc_type", "jacobi", "-ksp_type", solver, "-ksp_offpath_phi", "0.5"]
    found = results(run(2, [*argv, "-solves", "3", "-next", "1", "-ksp_view"]))
    assert len(found) == 3 and all(true < 1e-3 for _, _, true in found), found


@pytest.mark.parametrize("solver", SOLVERS)
def test_later_options_hold_for_later_solves(solver):
    argv = [solve_program(), *plugin(), "-pc_type", "jacobi", "-ksp_type", solver, "-ksp_view", "-solves", "3"]
    result = run(2, [*argv, "-later", " -ksp_offpath_phi 0.5 -ksp_offpath_leaders 1"])
    assert all(true < 1e-3 for _, _, true in results(result))
    assert re.findall(r"done by the service: (\S+)", result.stdout) == ["0.", "0.5", "0.5"]
    assert result.stdout.count("one leader for 2 ranks") == 2


def test_a_share_that_is_none_is_refused():
    for phi in ("1", "-0.1", "much"):
        result = run(1, [solve_program(), *plugin(), "-ksp_type", "offpath_cg", "-ksp_offpath_phi", phi])
        assert result.returncode != 0


def test_petsc_options_variable_and_log_view():
    options = " ".join([*plugin(), "-ksp_type", "offpath_pipecg", "-log_view", "-ksp_view"])
    result = run(1, [solve_program()], {"PETSC_OPTIONS": options})
    assert by_service(result)
    assert "OffpathPost" in result.stdout and "OffpathWait" in result.stdout


@pytest.mark.grid(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_without_a_service_the_host_does_it_and_says_so(solver):
    argv = [solve_program(), *plugin(), "-ksp_type", solver, "-ksp_monitor", "-ksp_view", "-info", ":ksp"]
    native = run(2, [solve_program(), "-ksp_type", SOLVERS[solver], "-ksp_monitor"])
    for env, why in (
        ({"OFFPATH_SERVICE_PATH": "/nowhere/offpathd"}, "/nowhere/offpathd"),
        ({"OFFPATH_SHARED_MEMORY_BYTES": "8192"}, "shared memory"),
    ):
        result = run(2, argv, env)
        assert not by_service(result)
        lines = [line for line in result.stdout.splitlines() if "Offpath: the host does the vector work" in line]
        assert len({line.split("]")[0] for line in lines}) == len(lines) and why in lines[0]
        assert_same_history(residuals(result)[:30], residuals(native)[:30])


@pytest.mark.grid(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_breakdowns_end_with_petscs_reasons(solver):
    argv = [solve_program(), *plugin(), "-ksp_type", solver, "-pc_type", "none"]
    for ranks in (1, 2):
        assert results(run(ranks, [*argv, "-shift", "-1"]))[0][1] == "DIVERGED_INDEFINITE_MAT"
        assert results(run(ranks, [*argv, "-poison"]))[0][1] == "DIVERGED_NANORINF"


@pytest.mark.grid(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_residual_of_zero_is_convergence_without_a_norm_too(solver):
    argv = [solve_program(), *plugin(), "-ksp_type", solver, "-pc_type", "none", "-ksp_norm_type", "none"]
    for ranks in (1, 2):
        assert results(run(ranks, [*argv, "-right", "0"]))[0][:2] == (0, "CONVERGED_ATOL")


@pytest.mark.grid(2)
@pytest.mark.parametrize("ranks", (1, 2))
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_service_that_dies_ends_the_solve_with_an_error(solver, ranks, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    argv = [solve_program(), *plugin(), "-ksp_type", solver, "-pc_type", "none", "-kill", "5", "-service", str(folder)]
    result = run(ranks, argv, {"OFFPATH_RUNTIME_DIR": str(folder)})
    assert result.returncode != 0
    assert "Offpath: vector operations of the solver failed" in result.stderr


@pytest.mark.parametrize("leaders", ("0", "1"))
def test_beside_the_preloaded_part(leaders):
    """Two sessions of a process with one service: PETSc's reductions by the one, the solvers' work by the other."""
    argv = [krylov_program(), *plugin(), "-grid", "8", "-rounds", "2", "-pc_type", "jacobi", "-ksp_view"]
    argv += ["-solvers", "pipecg,offpath_pipecg", "-ksp_offpath_leaders", leaders]
    env = SHARED | {"OFFPATH_POLICY": "iallreduce:dpu"}
    result = local_mpirun("openmpi", 3, argv, offload=True, env=env, timeout=LIMIT_S)
    theirs, ours = solvers_of(result)
    assert by_service(result)
    assert stats.offloaded_count(result.stats) > 0
    assert_same_history(ours["residual_history"], theirs["residual_history"])
    services = {int(pid) for pid in re.findall(r"the service of this node \(process (\d+)", result.stdout)}
    assert services == {line["service_pid"] for line in result.stats if line["mpi"] != "petsc"}
    steps = [line["offloaded_count"] for line in result.stats if line["mpi"] == "petsc"]
    assert len(steps) == 3 and min(steps) > 0


@pytest.mark.grid(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_service_that_dies_is_the_loss_of_both_parts(solver, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    argv = [solve_program(), *plugin(), "-pc_type", "none", "-kill", "5", "-service", str(folder), "-ksp_type"]
    env = SHARED | {"OFFPATH_RUNTIME_DIR": str(folder), "OFFPATH_POLICY": "iallreduce:dpu"}
    ours = local_mpirun("openmpi", 2, [*argv, solver], offload=True, env=env, timeout=LIMIT_S)
    assert ours.returncode != 0
    assert "Offpath: vector operations of the solver failed" in ours.stderr


@pytest.mark.grid(1)
@requires_root
@pytest.mark.parametrize("solver", SOLVERS)
def test_two_nodes(solver):
    argv = [krylov_program(), *plugin(), "-grid", "12", "-rounds", "2", "-pc_type", "jacobi"]
    argv += ["-solvers", f"{SOLVERS[solver]},{solver}", "-ksp_view"]
    with Lab(nodes=2, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:
        # The preloaded part stays out of it: only the solver talks to services.
        result = lab.mpirun("openmpi", 2, argv, offload=True, env={"OFFPATH_ENABLE": "0"}, timeout=LIMIT_S)
    theirs, ours = solvers_of(result)
    assert "team on 2 node(s)" in result.stdout
    assert_same_history(ours["residual_history"], theirs["residual_history"])
    assert ours["true_residual"] == pytest.approx(theirs["true_residual"], rel=1e-3)


@requires_root
def test_one_service_per_node_for_both_parts():
    argv = [krylov_program(), *plugin(), "-grid", "8", "-rounds", "2", "-pc_type", "jacobi", "-ksp_view"]
    argv += ["-solvers", "pipecg,offpath_pipecg"]
    with Lab(nodes=2, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:
        result = lab.mpirun("openmpi", 2, argv, offload=True, env={"OFFPATH_POLICY": "iallreduce:dpu"}, timeout=LIMIT_S)
    solvers_of(result)
    assert "team on 2 node(s)" in result.stdout
    assert stats.offloaded_count(result.stats) > 0
    services = {(line["node"], line["service_pid"]) for line in result.stats if line["mpi"] != "petsc"}
    solver = re.search(r"the service of this node \(process (\d+)", result.stdout)
    assert len(services) == 2 and int(solver[1]) in {pid for _, pid in services}
