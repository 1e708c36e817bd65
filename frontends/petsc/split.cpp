// SPDX-License-Identifier: BSD-3-Clause
// Any variant that `offpath split` divides: -ksp_type offpath_split -ksp_offpath_schedule FILE runs what `offpath split
// VARIANT --schedule FILE` has written. The host has scalars of its own; the service's are in the storage, and what the
// other side made is copied where the schedule says so.
#include "petsc/schedule.hpp"
#include "petsc/solver.hpp"

#include <fstream>
#include <iterator>

namespace offpath::petsc {
namespace {

constexpr PetscScalar kUnknown = 1;  // a curvature

struct Split {
  Schedule schedule;
  std::vector<const char*> vector_names, scalar_names;
  Variant variant;
  std::unique_ptr<Executor> here;
  std::vector<double> scalars;  // of the host
};

Split& split_of(KSP ksp) { return *static_cast<Split*>(solver_of(ksp).owned.get()); }

PetscErrorCode run_program(KSP ksp, const Schedule::Program& from, bool here) {
  PetscFunctionBegin;
  Split& split = split_of(ksp);
  Storage& storage = *solver_of(ksp).storage;
  offpath_program_t program = storage.program();
  from.put_into(program);
  if (!here) {
    for (const uint32_t scalar : from.given) storage.scalar(scalar) = split.scalars[scalar];
    PetscCall(post(ksp, program, crossing_of(from.in, from.out)));
    PetscFunctionReturn(0);
  }
  program.scalars = split.scalars.data();
  PetscCall(split.here->post(program, crossing_of({})));
  PetscCall(split.here->wait());
  for (const offpath_statement_t& statement : from.statements) {  // PETSc did not see them change
    if (statement.kind != OFFPATH_UPDATE) continue;
    PetscCall(PetscObjectStateIncrease(reinterpret_cast<PetscObject>(storage.vec(statement.target))));
  }
  PetscFunctionReturn(0);
}

PetscErrorCode wait_and_take(KSP ksp) {
  PetscFunctionBegin;
  Split& split = split_of(ksp);
  PetscCall(wait(ksp));
  for (const uint32_t scalar : split.schedule.taken) split.scalars[scalar] = solver_of(ksp).storage->scalar(scalar);
  PetscFunctionReturn(0);
}

PetscErrorCode multiply(KSP ksp, Mat matrix, uint32_t x, uint32_t y) {
  PetscFunctionBegin;
  Solver& solver = solver_of(ksp);
  PetscCall(solver.product.begin(ksp, *solver.storage, matrix, x, y));
  if (solver.product.phi() > 0) PetscCall(wait(ksp));
  PetscCall(solver.product.end(*solver.storage, y));
  PetscFunctionReturn(0);
}

// Ends early with a reason to stop.
PetscErrorCode run(KSP ksp, Mat matrix, const std::vector<Schedule::Action>& actions) {
  PetscFunctionBegin;
  const Storage& storage = *solver_of(ksp).storage;
  for (const Schedule::Action& action : actions) {
    switch (action.what) {
      case Schedule::What::precondition:
        PetscCall(KSP_PCApply(ksp, storage.vec(action.source), storage.vec(action.target)));
        break;
      case Schedule::What::multiply:
        PetscCall(multiply(ksp, matrix, action.source, action.target));
        break;
      case Schedule::What::here:
      case Schedule::What::there:
        PetscCall(run_program(ksp, action.program, action.what == Schedule::What::here));
        break;
      case Schedule::What::wait:
        PetscCall(wait_and_take(ksp));
        break;
      case Schedule::What::test:
        ksp->its += static_cast<PetscInt>(action.target);
        PetscCall(test_convergence(ksp, ksp->its, split_of(ksp).scalars[action.source], kUnknown));
        if (ksp->reason != KSP_CONVERGED_ITERATING) PetscFunctionReturn(0);
        ksp->its -= static_cast<PetscInt>(action.target);
        break;
    }
  }
  PetscFunctionReturn(0);
}

PetscErrorCode start(KSP ksp, Mat matrix) {
  PetscFunctionBegin;
  Split& split = split_of(ksp);
  Storage& storage = *solver_of(ksp).storage;
  const Vec b = storage.vec(split.schedule.vector("b"));
  PetscReal residual;
  PetscCall(begin_residual(ksp, matrix, split.schedule.vector("b")));
  PetscCall(VecNorm(b, NORM_2, &residual));
  if (residual == 0) ksp->reason = KSP_CONVERGED_ATOL;  // a variant would divide by it
  if (residual == 0) PetscFunctionReturn(0);
  PetscCall(VecCopy(ksp->vec_rhs, b));
  if (split.here == nullptr) split.here = make_host_executor(PetscObjectComm(reinterpret_cast<PetscObject>(ksp)));
  split.scalars = split.schedule.values;
  for (uint32_t i = 0; i < split.scalars.size(); ++i) storage.scalar(i) = split.scalars[i];
  PetscCall(run(ksp, matrix, split.schedule.setup));
  PetscFunctionReturn(0);
}

PetscErrorCode iterate(KSP ksp, Mat matrix) {
  PetscFunctionBegin;
  for (ksp->its = 0; ksp->reason == KSP_CONVERGED_ITERATING; ++ksp->its) {
    PetscCall(run(ksp, matrix, split_of(ksp).schedule.turns[ksp->its % 2]));
    if (ksp->reason != KSP_CONVERGED_ITERATING) break;
  }
  PetscCall(wait(ksp));
  PetscFunctionReturn(0);
}

// The first rank's file: others may have none.
PetscErrorCode read_file(MPI_Comm comm, const char* name, std::string* text) {
  PetscFunctionBegin;
  PetscMPIInt rank;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (rank == 0) {
    std::ifstream file(name);
    text->assign(std::istreambuf_iterator<char>(file), {});
  }
  int bytes = static_cast<int>(text->size());
  PetscCallMPI(MPI_Bcast(&bytes, 1, MPI_INT, 0, comm));
  text->resize(static_cast<size_t>(bytes));
  PetscCallMPI(MPI_Bcast(text->data(), bytes, MPI_CHAR, 0, comm));
  PetscFunctionReturn(0);
}

}  // namespace

PetscErrorCode create_split(KSP ksp) {
  PetscFunctionBegin;
  const MPI_Comm comm = PetscObjectComm(reinterpret_cast<PetscObject>(ksp));
  char file[PETSC_MAX_PATH_LEN] = "";
  PetscBool given;
  const char* prefix = reinterpret_cast<PetscObject>(ksp)->prefix;
  PetscCall(PetscOptionsGetString(nullptr, prefix, "-ksp_offpath_schedule", file, sizeof(file), &given));
  PetscCheck(
      given == PETSC_TRUE, comm, PETSC_ERR_USER,
      "-ksp_type offpath_split needs -ksp_offpath_schedule FILE. `offpath split VARIANT --schedule FILE` writes it");
  std::string text;
  PetscCall(read_file(comm, file, &text));
  auto split = std::make_shared<Split>();
  const std::string problem = split->schedule.read(text);
  PetscCheck(problem.empty(), comm, PETSC_ERR_FILE_UNEXPECTED,
             "%s is no schedule of a solver: %s. `offpath split VARIANT --schedule FILE` writes one", file,
             problem.c_str());
  Schedule& schedule = split->schedule;
  schedule.vectors.emplace_back("part");
  for (const std::string& name : schedule.vectors) split->vector_names.push_back(name.c_str());
  for (const std::string& name : schedule.scalars) split->scalar_names.push_back(name.c_str());
  split->variant = {{split->vector_names, split->scalar_names},
                    schedule.vector("x"),
                    schedule.vector("part"),
                    start,
                    iterate,
                    nullptr};
  split->variant.natural_only = true;
  split->variant.solution_is_there = schedule.result_is_there;
  PetscCall(create_solver(ksp, split->variant));
  solver_of(ksp).owned = split;
  PetscFunctionReturn(0);
}

}  // namespace offpath::petsc
