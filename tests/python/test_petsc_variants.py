# SPDX-License-Identifier: BSD-3-Clause
"""-ksp_type offpath_split: what `offpath split` divides also runs, here and with the vectors on a DPU."""

import pytest
from conftest import ROOT, offpath
from offpath.base.paths import paths
from offpath.split import variants
from petsc_support import assert_same_history, by_service, plugin, residuals, results, run, solve_program

DPU = ROOT / "tests" / "api" / "dpu.sh"  # a service that reaches its clients by an agent alone
THERE = {"OFFPATH_DPU": f"exec:{DPU} {paths().service}"}
PEERS = {"pcg": "cg", "cgcg": "cg", "pipecg": "pipecg", "pipecr": "pipecr", "groppcg": "groppcg"}  # PETSc's own
OWN = """
matrix A
preconditioner B
vectors r u s p

setup
    s = A x
    r = b - s
    p = 0
    gamma_old = inf

iterate
    u = B r
    gamma = (r, u)
    test gamma
    beta = gamma / gamma_old
    gamma_old = gamma
    p = u + beta * p
    s = A p
    delta = (s, p)
    alpha = gamma / delta
    x = x + alpha * p
    half = alpha / 2
    r = r - half * s - half * s
"""


def schedule_of(variant: str, folder, *options: str) -> list[str]:
    file = folder / "schedule.txt"
    result = offpath("split", variant, "--schedule", str(file), *options)
    assert result.returncode == 0, result.stderr
    return ["-ksp_type", "offpath_split", "-ksp_offpath_schedule", str(file)]


def program(*options: str) -> list[str]:
    return [solve_program(), "-rows", "200", "-ksp_norm_type", "natural", "-ksp_monitor", *options]


def test_all_shipped_variants_are_here_or_are_refused(tmp_path):
    result = offpath("split", "amgpcg", "--schedule", str(tmp_path / "schedule.txt"))
    assert result.returncode != 0 and "one matrix and one preconditioner" in result.stderr, result.stderr
    assert set(variants()) == {*PEERS, "amgpcg"}


@pytest.mark.grid(2)
@pytest.mark.parametrize("variant", PEERS)
def test_a_variant_solves_as_petscs_own(variant, tmp_path):
    options = ["-pc_type", "bjacobi", "-sub_pc_type", "jacobi", "-guess", "-solves", "2"]
    ours = run(2, [*program(*options, "-ksp_view"), *plugin(), *schedule_of(variant, tmp_path)])
    assert by_service(ours)
    assert all(reason.startswith("CONVERGED") and true < 1e-3 for _, reason, true in results(ours)), ours.stdout
    if variant == "pipecr":
        return  # PETSc's knows no natural norm
    theirs = run(2, [*program(*options), "-ksp_type", PEERS[variant]])
    assert_same_history(residuals(ours)[:30], residuals(theirs)[:30], rel=1e-5)


@pytest.mark.grid(2)
@pytest.mark.parametrize("variant", PEERS)
def test_a_variant_on_a_dpu_has_the_same_bits(variant, tmp_path):
    options = [*plugin(), *schedule_of(variant, tmp_path), "-pc_type", "jacobi", "-ksp_view"]
    for more in ([], ["-ksp_offpath_leaders", "1", "-ksp_offpath_phi", "0.3"]):
        there, here = (run(2, program(*options, *more), env) for env in (THERE, {}))
        assert "DPU, where the vectors stay" in there.stdout
        assert residuals(there) == residuals(here)
        assert results(there) == results(here)


def test_the_two_solvers_written_by_hand_do_the_same(tmp_path):
    for solver, variant in (("offpath_pipecg", "pipecg"), ("offpath_cg", "pcg")):
        options = [*plugin(), "-pc_type", "jacobi"]
        ours = run(2, program(*options, *schedule_of(variant, tmp_path)))
        theirs = run(2, program(*options, "-ksp_type", solver))
        assert_same_history(residuals(ours), residuals(theirs), rel=1e-5)


@pytest.mark.parametrize("balance", ([], ["--balance"]))
def test_a_variant_of_ones_own(balance, tmp_path):
    (tmp_path / "own.txt").write_text(OWN)
    argv = [*plugin(), *schedule_of(str(tmp_path / "own.txt"), tmp_path, *balance), "-pc_type", "jacobi"]
    assert results(run(2, program(*argv)))[0][2] < 1e-3


def test_a_right_hand_side_of_zero_is_met(tmp_path):
    argv = [*plugin(), *schedule_of("pcg", tmp_path), "-right", "0", "-pc_type", "none"]
    assert results(run(2, [solve_program(), *argv]))[0][:2] == (0, "CONVERGED_ATOL")


def test_what_is_no_schedule_is_refused_with_its_line(tmp_path):
    file = tmp_path / "schedule.txt"
    argv = [solve_program(), *plugin(), "-ksp_type", "offpath_split"]
    assert "needs -ksp_offpath_schedule FILE" in run(1, argv).stderr
    schedule_of("pcg", tmp_path)
    good = file.read_text()
    for bad, said in (
        (good.replace("offpath-schedule 1", "offpath-schedule 2"), "line 1 is not"),
        (good.replace("precondition u r", "precondition u q", 1), "a name that was not declared"),
        (good.replace("precondition u r", "precondition u", 1), "too few words"),
        (good.replace("precondition u r", "dance u r", 1), "a word that it does not know"),
        (good.replace("turn 1", ""), "it ends too early"),
        (good[: good.rindex("end")], "it ends too early"),
    ):
        file.write_text(bad)
        result = run(1, [*argv, "-ksp_offpath_schedule", str(file)])
        assert result.returncode != 0 and said in result.stderr, (said, result.stderr)
