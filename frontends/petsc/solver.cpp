// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/solver.hpp"

#include "petsc/job.hpp"

#include <cmath>

namespace offpath::petsc {
namespace {

PetscLogEvent post_event, wait_event;

PetscErrorCode show(KSP ksp, const char* what, const offpath_program_t& program) {
  PetscFunctionBegin;
  PetscBool wanted;
  PetscCall(PetscInfoEnabled(KSP_CLASSID, &wanted));
  if (wanted == PETSC_TRUE && program.statements_count > 0) {
    PetscCall(
        PetscInfo(ksp, "Offpath: the host %s: %s\n", what, text_of(program, solver_of(ksp).variant.names).c_str()));
  }
  PetscFunctionReturn(0);
}

PetscErrorCode reset(KSP ksp) {
  PetscFunctionBegin;
  PetscCall(solver_of(ksp).product.reset());
  solver_of(ksp).storage.reset();
  PetscFunctionReturn(0);
}

// -ksp_offpath_phi F|auto, -ksp_offpath_leaders N. Also of a solver that has solved: it is set up anew if they differ.
PetscErrorCode set_from_options(KSP ksp, PetscOptionItems* PetscOptionsObject) {
  PetscFunctionBegin;
  char text[32] = "";
  PetscBool given, is_auto;
  Solver& solver = solver_of(ksp);
  PetscReal phi = solver.phi;
  PetscInt leaders = solver.leaders;
  PetscOptionsHeadBegin(PetscOptionsObject, "Offpath options");
  PetscCall(PetscOptionsString("-ksp_offpath_phi", "share of a product's rows done by the service: 0 to 0.9, or auto",
                               "", "0", text, sizeof(text), &given));
  PetscCall(PetscOptionsBoundedInt("-ksp_offpath_leaders",
                                   "ranks of a node that talk to the service, for the others too; 0: every rank", "",
                                   leaders, &leaders, nullptr, 0));
  PetscOptionsHeadEnd();
  if (given == PETSC_TRUE) {
    PetscCall(PetscStrcmp(text, "auto", &is_auto));
    if (is_auto == PETSC_FALSE) PetscCall(PetscOptionsStringToReal(text, &phi));
    PetscCheck(is_auto == PETSC_TRUE || (phi >= 0 && phi <= 0.9), PetscObjectComm(reinterpret_cast<PetscObject>(ksp)),
               PETSC_ERR_ARG_OUTOFRANGE,
               "-ksp_offpath_phi %s is no share of rows that leaves some to the host. Give 0 to 0.9, or auto", text);
    if (is_auto == PETSC_TRUE) phi = -1;
  }
  if (solver.storage != nullptr && (phi != solver.phi || leaders != solver.leaders)) {
    PetscCall(reset(ksp));
    ksp->setupstage = KSP_SETUP_NEW;
  }
  solver.phi = phi;
  solver.leaders = leaders;
  PetscFunctionReturn(0);
}

PetscErrorCode setup(KSP ksp) {
  PetscFunctionBegin;
  Mat matrix;
  Vec like;
  PetscCall(PCGetOperators(ksp->pc, &matrix, nullptr));
  PetscCall(MatCreateVecs(matrix, &like, nullptr));
  Solver& solver = solver_of(ksp);
  const Names& names = solver.variant.names;
  PetscCall(Storage::create(ksp, like, static_cast<uint32_t>(names.vectors.size()),
                            static_cast<uint32_t>(names.scalars.size()), solver.leaders, &solver.storage));
  PetscCall(VecDestroy(&like));
  PetscFunctionReturn(0);
}

// Copies the iterate to where PETSc looks for it.
PetscErrorCode hand_back(KSP ksp) {
  PetscFunctionBegin;
  const Solver& solver = solver_of(ksp);
  if (solver.solving) {
    if (solver.storage->is_far() && solver.variant.solution_is_there) {
      Executor& executor = solver.storage->executor();
      PetscCall(executor.post(solver.storage->program(), crossing_of({}, {&solver.variant.solution, 1})));
      PetscCall(executor.wait());
    }
    const Vec iterate = solver.storage->vec(solver.variant.solution);
    PetscCall(PetscObjectStateIncrease(reinterpret_cast<PetscObject>(iterate)));  // PETSc did not see it change
    PetscCall(VecCopy(iterate, ksp->vec_sol));
  }
  PetscFunctionReturn(0);
}

PetscErrorCode solve(KSP ksp) {
  PetscFunctionBegin;
  Mat matrix;
  PetscCall(PCGetOperators(ksp->pc, &matrix, nullptr));
  ksp->its = 0;
  Solver& solver = solver_of(ksp);
  const Variant& variant = solver.variant;
  PetscCall(solver.product.prepare(ksp, *solver.storage, matrix, solver.phi, variant.part, variant.post_busy));
  PetscCall(variant.start(ksp, matrix));
  solver.solving = true;
  PetscCall(variant.iterate(ksp, matrix));
  PetscCall(hand_back(ksp));
  solver.solving = false;
  PetscFunctionReturn(0);
}

PetscErrorCode destroy(KSP ksp) {
  PetscFunctionBegin;
  delete &solver_of(ksp);
  ksp->data = nullptr;
  PetscFunctionReturn(0);
}

PetscErrorCode view(KSP ksp, PetscViewer viewer) {
  PetscFunctionBegin;
  PetscBool is_ascii;
  PetscCall(PetscObjectTypeCompare(reinterpret_cast<PetscObject>(viewer), PETSCVIEWERASCII, &is_ascii));
  if (is_ascii == PETSC_TRUE && solver_of(ksp).storage != nullptr) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  vector updates and dot products: %s\n",
                                     solver_of(ksp).storage->executor().describe().c_str()));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  preconditioner, matrix-vector product and the rest: this program\n"));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  share of the product's rows done by the service: %g\n",
                                     solver_of(ksp).product.phi()));
  }
  PetscFunctionReturn(0);
}

// A monitor may ask for the iterate at any time.
PetscErrorCode build_solution(KSP ksp, Vec given, Vec* out) {
  PetscFunctionBegin;
  PetscCall(hand_back(ksp));
  PetscCall(KSPBuildSolutionDefault(ksp, given, out));
  PetscFunctionReturn(0);
}

}  // namespace

PetscErrorCode create_solver(KSP ksp, const Variant& variant) {
  PetscFunctionBegin;
  ksp->data = new Solver{variant};
  for (const KSPNormType norm : {KSP_NORM_UNPRECONDITIONED, KSP_NORM_PRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_NONE}) {
    const bool is_natural = norm == KSP_NORM_NATURAL;
    if (variant.natural_only && !is_natural && norm != KSP_NORM_NONE) continue;
    const bool is_default = variant.natural_only ? is_natural : norm == KSP_NORM_PRECONDITIONED;
    PetscCall(KSPSetSupportedNorm(ksp, norm, PC_LEFT, is_default ? 3 : 2));
  }
  ksp->ops->setup = setup;
  ksp->ops->solve = solve;
  ksp->ops->setfromoptions = set_from_options;
  ksp->ops->reset = reset;
  ksp->ops->destroy = destroy;
  ksp->ops->view = view;
  ksp->ops->buildsolution = build_solution;
  ksp->ops->buildresidual = KSPBuildResidualDefault;
  PetscFunctionReturn(0);
}

PetscErrorCode begin_residual(KSP ksp, Mat matrix, uint32_t residual) {
  PetscFunctionBegin;
  const Solver& solver = solver_of(ksp);
  const Vec x = solver.storage->vec(solver.variant.solution), r = solver.storage->vec(residual);
  if (ksp->guess_zero == PETSC_TRUE) {
    PetscCall(VecSet(x, 0));
    PetscCall(VecCopy(ksp->vec_rhs, r));
  } else {
    PetscCall(VecCopy(ksp->vec_sol, x));
    PetscCall(KSP_MatMult(ksp, matrix, x, r));
    PetscCall(VecAYPX(r, -1, ksp->vec_rhs));
  }
  PetscFunctionReturn(0);
}

bool takes_norm(KSP ksp) {
  return ksp->normtype == KSP_NORM_PRECONDITIONED || ksp->normtype == KSP_NORM_UNPRECONDITIONED;
}

PetscErrorCode test_convergence(KSP ksp, PetscInt iteration, PetscScalar gamma, PetscScalar curvature) {
  PetscFunctionBegin;
  KSPCheckDot(ksp, gamma);
  if (ksp->normtype == KSP_NORM_NATURAL) ksp->rnorm = std::sqrt(std::fabs(gamma));
  if (ksp->normtype == KSP_NORM_NONE) ksp->rnorm = 0;
  PetscCall(KSPLogResidualHistory(ksp, ksp->rnorm));
  PetscCall(KSPMonitor(ksp, iteration, ksp->rnorm));
  PetscCall((*ksp->converged)(ksp, iteration, ksp->rnorm, &ksp->reason, ksp->cnvP));
  if (ksp->reason != KSP_CONVERGED_ITERATING) PetscFunctionReturn(0);
  if (gamma < 0) {
    ksp->reason = KSP_DIVERGED_INDEFINITE_PC;
  } else if (gamma == 0) {
    ksp->reason = KSP_CONVERGED_ATOL;  // the preconditioned residual is 0
  } else if (curvature <= 0) {
    ksp->reason = KSP_DIVERGED_INDEFINITE_MAT;
  } else if (iteration >= ksp->max_it) {
    ksp->reason = KSP_DIVERGED_ITS;
  }
  PetscFunctionReturn(0);
}

PetscErrorCode register_events() {
  PetscFunctionBegin;
  PetscCall(PetscLogEventRegister("OffpathPost", KSP_CLASSID, &post_event));
  PetscCall(PetscLogEventRegister("OffpathWait", KSP_CLASSID, &wait_event));
  PetscFunctionReturn(0);
}

PetscErrorCode post(KSP ksp, const offpath_program_t& program, const offpath_crossing_t& crossing) {
  PetscFunctionBegin;
  PetscCall(show(ksp, "posts", program));
  PetscCall(PetscLogEventBegin(post_event, ksp, 0, 0, 0));
  Executor& executor = solver_of(ksp).storage->executor();
  PetscCall(executor.post(program, crossing));
  count_program(executor.offloads());
  PetscCall(PetscLogEventEnd(post_event, ksp, 0, 0, 0));
  PetscFunctionReturn(0);
}

PetscErrorCode run_here(KSP ksp, std::span<const offpath_statement_t> statements) {
  PetscFunctionBegin;
  offpath_program_t program = solver_of(ksp).storage->program();
  program.statements = statements.data();
  program.statements_count = static_cast<uint32_t>(statements.size());
  PetscCall(show(ksp, "does", program));
  PetscCall(run_pass(program));
  PetscFunctionReturn(0);
}

PetscErrorCode wait(KSP ksp) {
  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(wait_event, ksp, 0, 0, 0));
  PetscCall(solver_of(ksp).storage->executor().wait());
  PetscCall(PetscLogEventEnd(wait_event, ksp, 0, 0, 0));
  PetscFunctionReturn(0);
}

}  // namespace offpath::petsc
