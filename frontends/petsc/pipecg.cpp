// SPDX-License-Identifier: BSD-3-Clause
// Pipelined conjugate gradients (Ghysels, Vanroose: Parallel Computing 40, 2014), split as `offpath split pipecg` says:
//
//   host      m = B w, n = A m, z = n + beta z, w = w - alpha z
//   service   q = m + beta q, p = u + beta p, s = w + beta s, x += alpha p, u -= alpha q, r -= alpha s, the dots
//             gamma = (r, u), delta = (w, u) and the norm, their sums over the ranks, alpha and beta of the next step
//
// The service works on an iteration while the host is at the next one's B and A, so m and w lie in two buffers that
// take turns. One program per iteration; the host waits for the one before.
#include "petsc/solver.hpp"

#include <cmath>
#include <limits>

namespace offpath::petsc {
namespace {

enum Vector : uint32_t { kM0, kM1, kW0, kW1, kN, kZ, kQ, kP, kS, kX, kU, kR, kPart };
constexpr const char* kVectorNames[] = {"m", "m'", "w", "w'", "n", "z", "q", "p", "s", "x", "u", "r", "part"};
enum Scalar : uint32_t { kOne, kMinusOne, kGamma, kDelta, kNorm, kGammaOld, kAlpha, kMinusAlpha, kBeta, kCurvature };
constexpr const char* kScalarNames[] = {"1",         "-1",    "gamma",  "delta", "norm",
                                        "gamma_old", "alpha", "-alpha", "beta",  "curvature"};

constexpr uint32_t kSums = kGamma, kSumsCount = 3;  // gamma, delta, norm

// beta = gamma / gamma_old, alpha = gamma / (delta - beta / alpha_old * gamma). The first time gamma_old is infinite.
constexpr offpath_scalar_step_t kAfter[] = {{OFFPATH_SCALAR_DIVIDE, kBeta, kGamma, kGammaOld},
                                            {OFFPATH_SCALAR_DIVIDE, kCurvature, kBeta, kAlpha},
                                            {OFFPATH_SCALAR_MULTIPLY, kCurvature, kCurvature, kGamma},
                                            {OFFPATH_SCALAR_SUBTRACT, kCurvature, kDelta, kCurvature},
                                            {OFFPATH_SCALAR_DIVIDE, kAlpha, kGamma, kCurvature},
                                            {OFFPATH_SCALAR_MULTIPLY, kMinusAlpha, kMinusOne, kAlpha},
                                            {OFFPATH_SCALAR_COPY, kGammaOld, kGamma, kGamma}};

// The service's share of an iteration: `updates` (not before the first) and the dots. `turn` names the buffers.
PetscErrorCode post_iteration(KSP ksp, uint32_t turn, bool updates) {
  PetscFunctionBegin;
  Storage& storage = *solver_of(ksp).storage;
  const uint32_t m = turn == 0 ? kM0 : kM1, w = turn == 0 ? kW0 : kW1, next_w = turn == 0 ? kW1 : kW0;
  const uint32_t normed = ksp->normtype == KSP_NORM_PRECONDITIONED ? kU : kR;
  const bool norm = takes_norm(ksp);
  const offpath_term_t q[] = {{kOne, m}, {kBeta, kQ}}, p[] = {{kOne, kU}, {kBeta, kP}}, s[] = {{kOne, w}, {kBeta, kS}},
                       x[] = {{kOne, kX}, {kAlpha, kP}}, u[] = {{kOne, kU}, {kMinusAlpha, kQ}},
                       r[] = {{kOne, kR}, {kMinusAlpha, kS}}, gamma[] = {{0, kR}, {0, kU}},
                       delta[] = {{0, updates ? next_w : w}, {0, kU}}, norms[] = {{0, normed}, {0, normed}};
  const offpath_statement_t statements[] = {
      {OFFPATH_UPDATE, kQ, 2, q},      {OFFPATH_UPDATE, kP, 2, p},      {OFFPATH_UPDATE, kS, 2, s},
      {OFFPATH_UPDATE, kX, 2, x},      {OFFPATH_UPDATE, kU, 2, u},      {OFFPATH_UPDATE, kR, 2, r},
      {OFFPATH_DOT, kGamma, 2, gamma}, {OFFPATH_DOT, kDelta, 2, delta}, {OFFPATH_DOT, kNorm, 2, norms}};
  constexpr uint32_t kUpdates = 6, kAll = 9;
  offpath_program_t program = storage.program();
  program.statements = updates ? statements : statements + kUpdates;
  program.statements_count = (updates ? kAll : kAll - kUpdates) - (norm ? 0 : 1);
  program.reduce_first = kSums;
  program.reduce_count = norm ? kSumsCount : kSumsCount - 1;
  program.after = kAfter;
  program.after_count = sizeof(kAfter) / sizeof(kAfter[0]);
  // The host has made m, which its product brings if the service has a part of that, and the next w.
  const uint32_t begins[] = {kW0, kX, kU, kR, kQ, kP, kS}, goes_on[] = {next_w, m};
  const size_t made = solver_of(ksp).product.phi() > 0 ? 1 : 2;
  PetscCall(post(ksp, program, updates ? crossing_of({goes_on, made}) : crossing_of(begins)));
  PetscFunctionReturn(0);
}

// z = n + beta z, next_w = w - alpha z.
PetscErrorCode update_z_and_w(KSP ksp, uint32_t w, uint32_t next_w) {
  PetscFunctionBegin;
  const offpath_term_t z[] = {{kOne, kN}, {kBeta, kZ}}, next[] = {{kOne, w}, {kMinusAlpha, kZ}};
  const offpath_statement_t statements[] = {{OFFPATH_UPDATE, kZ, 2, z}, {OFFPATH_UPDATE, next_w, 2, next}};
  PetscCall(run_here(ksp, statements));
  PetscCall(PetscObjectStateIncrease(reinterpret_cast<PetscObject>(solver_of(ksp).storage->vec(next_w))));
  PetscFunctionReturn(0);
}

// r = b - A x, u = B r, w = A u; what is only added up begins as 0.
PetscErrorCode start(KSP ksp, Mat matrix) {
  PetscFunctionBegin;
  Storage& storage = *solver_of(ksp).storage;
  for (const uint32_t vector : {kZ, kQ, kP, kS}) PetscCall(VecSet(storage.vec(vector), 0));
  PetscCall(begin_residual(ksp, matrix, kR));
  PetscCall(KSP_PCApply(ksp, storage.vec(kR), storage.vec(kU)));
  PetscCall(KSP_MatMult(ksp, matrix, storage.vec(kU), storage.vec(kW0)));
  storage.scalar(kOne) = storage.scalar(kAlpha) = 1;
  storage.scalar(kMinusOne) = -1;
  storage.scalar(kGammaOld) = std::numeric_limits<double>::infinity();
  PetscFunctionReturn(0);
}

PetscErrorCode iterate(KSP ksp, Mat matrix) {
  PetscFunctionBegin;
  Storage& storage = *solver_of(ksp).storage;
  Product& product = solver_of(ksp).product;
  PetscCall(post_iteration(ksp, 0, false));
  for (PetscInt i = 0;; ++i) {
    const uint32_t turn = i % 2;
    const uint32_t m = turn == 0 ? kM0 : kM1, w = turn == 0 ? kW0 : kW1, next_w = turn == 0 ? kW1 : kW0;
    PetscCall(KSP_PCApply(ksp, storage.vec(w), storage.vec(m)));
    PetscCall(product.begin(ksp, storage, matrix, m, kN));
    PetscCall(wait(ksp));
    PetscCall(product.end(storage, kN));
    KSPCheckDot(ksp, storage.scalar(kDelta));
    if (takes_norm(ksp)) ksp->rnorm = std::sqrt(std::fabs(storage.scalar(kNorm)));
    PetscCall(test_convergence(ksp, i, storage.scalar(kGamma), storage.scalar(kCurvature)));
    if (ksp->reason != KSP_CONVERGED_ITERATING) PetscFunctionReturn(0);
    PetscCall(update_z_and_w(ksp, w, next_w));
    PetscCall(post_iteration(ksp, turn, true));
    ksp->its = i + 1;
  }
}

PetscErrorCode post_updates(KSP ksp) { return post_iteration(ksp, 0, true); }

constexpr Variant kVariant = {{kVectorNames, kScalarNames}, kX, kPart, start, iterate, post_updates};

}  // namespace

PetscErrorCode create_pipecg(KSP ksp) { return create_solver(ksp, kVariant); }

}  // namespace offpath::petsc
