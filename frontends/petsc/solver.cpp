// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/solver.hpp"

#include "petsc/job.hpp"

namespace offpath::petsc {
namespace {

PetscLogEvent post_event, wait_event;

PetscErrorCode show(KSP ksp, const char* what, const offpath_program_t& program) {
  PetscFunctionBegin;
  PetscBool wanted;
  PetscCall(PetscInfoEnabled(KSP_CLASSID, &wanted));
  if (wanted == PETSC_TRUE && program.statements_count > 0) {
    PetscCall(PetscInfo(ksp, "Offpath: the host %s: %s\n", what, text_of(program, solver_of(ksp).names).c_str()));
  }
  PetscFunctionReturn(0);
}

// -ksp_offpath_phi F|auto, -ksp_offpath_leaders N
PetscErrorCode set_from_options(KSP ksp, PetscOptionItems* PetscOptionsObject) {
  PetscFunctionBegin;
  char text[32] = "";
  PetscBool given, is_auto;
  PetscReal phi = 0;
  PetscOptionsHeadBegin(PetscOptionsObject, "Offpath options");
  PetscCall(PetscOptionsString("-ksp_offpath_phi", "share of a product's rows done by the service: 0 to 0.9, or auto",
                               "", "0", text, sizeof(text), &given));
  PetscCall(PetscOptionsBoundedInt("-ksp_offpath_leaders",
                                   "ranks of a node that talk to the service, for the others too; 0: every rank", "",
                                   solver_of(ksp).leaders, &solver_of(ksp).leaders, nullptr, 0));
  PetscOptionsHeadEnd();
  if (given == PETSC_FALSE) PetscFunctionReturn(0);
  PetscCall(PetscStrcmp(text, "auto", &is_auto));
  if (is_auto == PETSC_FALSE) PetscCall(PetscOptionsStringToReal(text, &phi));
  PetscCheck(phi >= 0 && phi <= 0.9, PetscObjectComm(reinterpret_cast<PetscObject>(ksp)), PETSC_ERR_ARG_OUTOFRANGE,
             "-ksp_offpath_phi %s is no share of rows that leaves some to the host. Give 0 to 0.9, or auto", text);
  solver_of(ksp).phi = is_auto == PETSC_TRUE ? -1 : phi;
  PetscFunctionReturn(0);
}

PetscErrorCode reset(KSP ksp) {
  PetscFunctionBegin;
  PetscCall(solver_of(ksp).product.reset());
  solver_of(ksp).storage.reset();
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

PetscErrorCode create_solver(KSP ksp, PetscErrorCode (*setup)(KSP), PetscErrorCode (*solve)(KSP), uint32_t solution) {
  PetscFunctionBegin;
  auto solver = std::make_unique<Solver>();
  solver->solution = solution;
  ksp->data = solver.release();
  for (const KSPNormType norm : {KSP_NORM_UNPRECONDITIONED, KSP_NORM_PRECONDITIONED, KSP_NORM_NATURAL, KSP_NORM_NONE}) {
    PetscCall(KSPSetSupportedNorm(ksp, norm, PC_LEFT, norm == KSP_NORM_PRECONDITIONED ? 3 : 2));
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

PetscErrorCode make_storage(KSP ksp, const Names& names) {
  PetscFunctionBegin;
  Mat matrix;
  Vec like;
  PetscCall(PCGetOperators(ksp->pc, &matrix, nullptr));
  PetscCall(MatCreateVecs(matrix, &like, nullptr));
  Solver& solver = solver_of(ksp);
  solver.names = names;
  PetscCall(Storage::create(ksp, like, static_cast<uint32_t>(names.vectors.size()),
                            static_cast<uint32_t>(names.scalars.size()), solver.leaders, &solver.storage));
  PetscCall(VecDestroy(&like));
  PetscFunctionReturn(0);
}

PetscErrorCode begin_residual(KSP ksp, Mat matrix, uint32_t solution, uint32_t residual) {
  PetscFunctionBegin;
  const Vec x = solver_of(ksp).storage->vec(solution), r = solver_of(ksp).storage->vec(residual);
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

PetscErrorCode run_solver(KSP ksp, PetscErrorCode (*start)(KSP, Mat), PetscErrorCode (*iterate)(KSP, Mat),
                          uint32_t part, PetscErrorCode (*post_busy)(KSP)) {
  PetscFunctionBegin;
  Mat matrix;
  PetscCall(PCGetOperators(ksp->pc, &matrix, nullptr));
  ksp->its = 0;
  Solver& solver = solver_of(ksp);
  PetscCall(solver.product.prepare(ksp, *solver.storage, matrix, solver.phi, part, post_busy));
  PetscCall(start(ksp, matrix));
  solver.solving = true;
  PetscCall(iterate(ksp, matrix));
  PetscCall(hand_back(ksp));
  solver.solving = false;
  PetscFunctionReturn(0);
}

PetscErrorCode hand_back(KSP ksp) {
  PetscFunctionBegin;
  const Solver& solver = solver_of(ksp);
  if (solver.solving) {
    const Vec iterate = solver.storage->vec(solver.solution);
    PetscCall(PetscObjectStateIncrease(reinterpret_cast<PetscObject>(iterate)));  // PETSc did not see it change
    PetscCall(VecCopy(iterate, ksp->vec_sol));
  }
  PetscFunctionReturn(0);
}

PetscErrorCode register_events() {
  PetscFunctionBegin;
  PetscCall(PetscLogEventRegister("OffpathPost", KSP_CLASSID, &post_event));
  PetscCall(PetscLogEventRegister("OffpathWait", KSP_CLASSID, &wait_event));
  PetscFunctionReturn(0);
}

PetscErrorCode post(KSP ksp, const offpath_program_t& program) {
  PetscFunctionBegin;
  PetscCall(show(ksp, "posts", program));
  PetscCall(PetscLogEventBegin(post_event, ksp, 0, 0, 0));
  Executor& executor = solver_of(ksp).storage->executor();
  PetscCall(executor.post(program));
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
