// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients (Hestenes, Stiefel 1952), split as `offpath split pcg` says: all but the iterate lies on the way
// from one product to the next and stays on the host. The service updates x while the host updates r, preconditions and
// takes dot products: it is done long before p changes.
#include "petsc/solver.hpp"

#include <cmath>

namespace offpath::petsc {
namespace {

enum Vector : uint32_t { kR, kU, kP, kS, kX, kPart };
constexpr const char* kVectorNames[] = {"r", "u", "p", "s", "x", "part"};
enum Scalar : uint32_t { kOne, kAlpha };
constexpr const char* kScalarNames[] = {"1", "alpha"};
constexpr PetscScalar kUnknown = 1;  // the curvature before the product

PetscErrorCode post_update(KSP ksp, double alpha, bool first) {
  PetscFunctionBegin;
  Storage& storage = *solver_of(ksp).storage;
  storage.scalar(kOne) = 1;
  storage.scalar(kAlpha) = alpha;
  const offpath_term_t terms[] = {{kOne, kX}, {kAlpha, kP}};
  const offpath_statement_t statement = {OFFPATH_UPDATE, kX, 2, terms};
  offpath_program_t program = storage.program();
  program.statements = &statement;
  program.statements_count = 1;
  // The service has p if it has a part of the product.
  const uint32_t needed[] = {kX, kP};
  const size_t begin = first ? 0 : 1, end = solver_of(ksp).product.phi() > 0 ? 1 : 2;
  PetscCall(post(ksp, program, crossing_of(std::span(needed).subspan(begin, end - begin))));
  PetscFunctionReturn(0);
}

// gamma = (r, u) and the residual's norm, in one reduction.
PetscErrorCode take_dots(KSP ksp, PetscScalar* gamma) {
  PetscFunctionBegin;
  const Storage& storage = *solver_of(ksp).storage;
  const Vec r = storage.vec(kR), u = storage.vec(kU);
  const bool preconditioned = ksp->normtype == KSP_NORM_PRECONDITIONED;
  PetscCall(VecDotBegin(r, u, gamma));
  if (takes_norm(ksp)) PetscCall(VecNormBegin(preconditioned ? u : r, NORM_2, &ksp->rnorm));
  PetscCall(VecDotEnd(r, u, gamma));
  if (takes_norm(ksp)) PetscCall(VecNormEnd(preconditioned ? u : r, NORM_2, &ksp->rnorm));
  PetscFunctionReturn(0);
}

PetscErrorCode iterate(KSP ksp, Mat matrix) {
  PetscFunctionBegin;
  Storage& storage = *solver_of(ksp).storage;
  Product& product = solver_of(ksp).product;
  const Vec r = storage.vec(kR), u = storage.vec(kU), p = storage.vec(kP), s = storage.vec(kS);
  PetscScalar gamma_old = INFINITY;
  for (PetscInt i = 0;; ++i) {
    PetscScalar gamma, curvature;
    PetscCall(KSP_PCApply(ksp, r, u));
    PetscCall(take_dots(ksp, &gamma));
    if (i > 0) PetscCall(wait(ksp));
    PetscCall(test_convergence(ksp, i, gamma, kUnknown));
    if (ksp->reason != KSP_CONVERGED_ITERATING) PetscFunctionReturn(0);
    PetscCall(VecAYPX(p, gamma / gamma_old, u));
    gamma_old = gamma;
    PetscCall(product.begin(ksp, storage, matrix, kP, kS));
    if (product.phi() > 0) PetscCall(wait(ksp));
    PetscCall(product.end(storage, kS));
    PetscCall(VecDot(p, s, &curvature));
    KSPCheckDot(ksp, curvature);
    if (curvature <= 0) {
      ksp->reason = KSP_DIVERGED_INDEFINITE_MAT;
      PetscFunctionReturn(0);
    }
    PetscCall(post_update(ksp, gamma / curvature, i == 0));
    PetscCall(VecAXPY(r, -gamma / curvature, s));
    ksp->its = i + 1;
  }
}

PetscErrorCode start(KSP ksp, Mat matrix) {
  PetscFunctionBegin;
  const Storage& storage = *solver_of(ksp).storage;
  PetscCall(VecSet(storage.vec(kP), 0));
  PetscCall(begin_residual(ksp, matrix, kR));
  PetscFunctionReturn(0);
}

constexpr Variant kVariant = {{kVectorNames, kScalarNames}, kX, kPart, start, iterate, nullptr};

}  // namespace

PetscErrorCode create_cg(KSP ksp) { return create_solver(ksp, kVariant); }

}  // namespace offpath::petsc
