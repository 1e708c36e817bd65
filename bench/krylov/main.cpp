// SPDX-License-Identifier: BSD-3-Clause
// Solves one system with several solvers in turns, and prints what each of them took as JSON. Nothing here knows the
// solvers: -solvers cg,pipecg,offpath_pipecg; everything else by PETSc's options (-pc_type, -ksp_max_it, ...).
#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/json.hpp"
#include "matrix.hpp"

#include <petscksp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr char kHelp[] =
    "Time per iteration of Krylov solvers in turns.\n"
    "  -grid N           3-D Laplacian, 27-point stencil, N x N x N (default 64)\n"
    "  -load FILE        or a matrix in PETSc's binary form\n"
    "  -solvers A,B,...  types of KSP (default cg,pipecg)\n"
    "  -rounds N         solves of each, in turns (default 5)\n";

struct Solver {
  KSP ksp = nullptr;
  std::string type;
  std::vector<double> seconds;      // per iteration, by round
  std::vector<double> cpu_seconds;  // of this rank, likewise
  std::vector<double> sum_seconds;  // in sums over all ranks, mean of the ranks, likewise
  std::vector<double> history;
  PetscInt iterations = 0;
  int reason = 0;
  double true_residual = 0;  // relative, of what was returned
  double drift = 0;          // between that and what the recurrence says: the most of all rounds
};

PetscErrorCode make_matrix(Mat* matrix) {
  PetscFunctionBegin;
  PetscInt grid = 64;
  char file[PETSC_MAX_PATH_LEN];
  PetscBool load;
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-grid", &grid, nullptr));
  PetscCall(PetscOptionsGetString(nullptr, nullptr, "-load", file, sizeof(file), &load));
  if (load == PETSC_FALSE) {
    PetscCall(offpath::bench::make_laplacian(PETSC_COMM_WORLD, grid, matrix));
    PetscFunctionReturn(0);
  }
  PetscViewer viewer;
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
  PetscCall(MatCreate(PETSC_COMM_WORLD, matrix));
  PetscCall(MatSetFromOptions(*matrix));
  PetscCall(MatLoad(*matrix, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(0);
}

PetscErrorCode make_solvers(Mat matrix, std::vector<Solver>* solvers) {
  PetscFunctionBegin;
  char names[32][64] = {};
  char* types[32] = {};
  PetscInt count = 32;
  PetscBool given;
  PetscCall(PetscOptionsGetStringArray(nullptr, nullptr, "-solvers", types, &count, &given));
  for (PetscInt i = 0; i < (given == PETSC_TRUE ? count : 2); ++i) {
    PetscCall(PetscStrncpy(names[i], given == PETSC_TRUE ? types[i] : i == 0 ? KSPCG : KSPPIPECG, sizeof(names[i])));
    PetscCall(PetscFree(types[i]));
    Solver solver;
    solver.type = names[i];
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver.ksp));
    PetscCall(KSPSetOperators(solver.ksp, matrix, matrix));
    PetscCall(KSPSetType(solver.ksp, names[i]));
    PetscCall(KSPSetFromOptions(solver.ksp));
    PetscCall(KSPSetResidualHistory(solver.ksp, nullptr, PETSC_DECIDE, PETSC_TRUE));
    PetscCall(KSPSetUp(solver.ksp));
    solvers->push_back(std::move(solver));
  }
  PetscFunctionReturn(0);
}

// What this rank has spent so far in operations that wait for a sum over all ranks, or post one, by PETSc's log. Those
// of blocking dot products and norms include the rank's own part.
PetscErrorCode sum_seconds(double* seconds) {
  PetscFunctionBegin;
  *seconds = 0;
  for (const char* name : {"VecDot", "VecTDot", "VecNorm", "VecReduceBegin", "VecReduceEnd", "VecReduceComm",
                           "OffpathPost", "OffpathWait"}) {
    PetscLogEvent event;
    PetscEventPerfInfo spent;
    PetscCall(PetscLogEventGetId(name, &event));
    if (event < 0) continue;  // of a plug-in that is not there
    PetscCall(PetscLogEventGetPerfInfo(0, event, &spent));
    *seconds += spent.time;
  }
  PetscFunctionReturn(0);
}

PetscErrorCode solve(Mat matrix, Vec b, Vec x, Solver* solver) {
  PetscFunctionBegin;
  PetscCall(VecSet(x, 0));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  double sums_begin, sums;
  PetscCall(sum_seconds(&sums_begin));
  const std::int64_t cpu_begin = kit::process_cpu_ns();
  const double begin = MPI_Wtime();
  PetscCall(KSPSolve(solver->ksp, b, x));
  const double cpu = 1e-9 * static_cast<double>(kit::process_cpu_ns() - cpu_begin);
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  const double seconds = MPI_Wtime() - begin;
  PetscCall(sum_seconds(&sums));
  sums -= sums_begin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &sums, 1, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD));
  PetscMPIInt ranks;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  KSPConvergedReason reason;
  PetscCall(KSPGetIterationNumber(solver->ksp, &solver->iterations));
  PetscCall(KSPGetConvergedReason(solver->ksp, &reason));
  solver->reason = reason;
  const auto iterations = static_cast<double>(std::max<PetscInt>(1, solver->iterations));
  solver->seconds.push_back(seconds / iterations);
  solver->cpu_seconds.push_back(cpu / iterations);
  solver->sum_seconds.push_back(sums / ranks / iterations);
  const PetscReal* history;
  PetscInt length;
  PetscCall(KSPGetResidualHistory(solver->ksp, &history, &length));
  solver->history.assign(history, history + length);
  Vec residual;
  PetscReal norm, reference;
  PetscCall(VecDuplicate(b, &residual));
  PetscCall(MatMult(matrix, x, residual));
  PetscCall(VecAYPX(residual, -1, b));
  PetscCall(VecNorm(residual, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &reference));
  PetscCall(VecDestroy(&residual));
  solver->true_residual = norm / reference;
  solver->drift =
      std::max(solver->drift, std::abs(solver->true_residual - solver->history.back() / solver->history[0]));
  PetscFunctionReturn(0);
}

PetscErrorCode report(Mat matrix, const std::vector<Solver>& solvers) {
  PetscFunctionBegin;
  PetscInt rows;
  MatInfo info;
  PetscMPIInt rank, ranks;
  PetscCall(MatGetSize(matrix, &rows, nullptr));
  PetscCall(MatGetInfo(matrix, MAT_GLOBAL_SUM, &info));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  kit::Json json = {{"rows", rows},
                    {"entries", static_cast<int64_t>(info.nz_used)},
                    {"ranks", ranks},
                    {"solvers", kit::Json::array()}};
  for (const Solver& solver : solvers) {
    json["solvers"].push_back({{"type", solver.type},
                               {"iterations", solver.iterations},
                               {"reason", solver.reason},
                               {"true_residual", solver.true_residual},
                               {"drift", solver.drift},
                               {"iteration_s", solver.seconds},
                               {"host_cpu_s", solver.cpu_seconds},
                               {"sum_s", solver.sum_seconds},
                               {"residual_history", solver.history}});
  }
  if (rank == 0) std::puts(json.dump().c_str());
  PetscFunctionReturn(0);
}

}  // namespace

int main(int argc, char** argv) {
  PetscCall(PetscInitialize(&argc, &argv, nullptr, kHelp));
  PetscCall(PetscLogDefaultBegin());
  Mat matrix;
  Vec b, x, ones;
  std::vector<Solver> solvers;
  PetscInt rounds = 5;
  PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-rounds", &rounds, nullptr));
  PetscCall(make_matrix(&matrix));
  PetscCall(MatCreateVecs(matrix, &x, &b));
  PetscCall(VecDuplicate(x, &ones));
  PetscCall(VecSet(ones, 1));
  PetscCall(MatMult(matrix, ones, b));
  PetscCall(make_solvers(matrix, &solvers));
  for (PetscInt round = 0; round < rounds; ++round) {
    // Another right-hand side in each round: sums that an earlier one has left are wrong.
    if (round > 0) PetscCall(VecScale(b, static_cast<PetscReal>(round + 1) / static_cast<PetscReal>(round)));
    for (Solver& solver : solvers) PetscCall(solve(matrix, b, x, &solver));
  }
  PetscCall(report(matrix, solvers));
  for (Solver& solver : solvers) PetscCall(KSPDestroy(&solver.ksp));
  PetscCall(VecDestroy(&ones));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&matrix));
  PetscCall(PetscFinalize());
  return 0;
}
