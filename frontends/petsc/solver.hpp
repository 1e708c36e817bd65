// SPDX-License-Identifier: BSD-3-Clause
// What the solvers share: storage made at set-up, and what PETSc asks of a KSP besides solving.
#pragma once

#include "petsc/description.hpp"
#include "petsc/product.hpp"
#include "petsc/storage.hpp"

namespace offpath::petsc {

// What tells one solver from another.
struct Variant {
  Names names;              // static; there are as many vectors and scalars
  uint32_t solution, part;  // vectors: the iterate, and what takes the service's part of a product
  PetscErrorCode (*start)(KSP, Mat);
  PetscErrorCode (*iterate)(KSP, Mat);
  PetscErrorCode (*post_busy)(
      KSP);  // what the service has to do besides products in an iteration, for its time; null: nothing
  bool natural_only = false;      // it knows no other norm
  bool solution_is_there = true;  // the service updates the iterate
};

struct Solver {
  const Variant& variant;
  std::unique_ptr<Storage> storage = nullptr;
  Product product = {};
  double phi = 0;                         // -ksp_offpath_phi; negative: auto
  PetscInt leaders = 0;                   // -ksp_offpath_leaders; 0: every rank
  bool solving = false;                   // the iterate is ahead of the KSP's own vector
  std::shared_ptr<void> owned = nullptr;  // the variant's own, and the variant, if it is not static
};

inline Solver& solver_of(KSP ksp) { return *static_cast<Solver*>(ksp->data); }

// A KSP of this kind: left preconditioning, all norms.
PetscErrorCode create_solver(KSP ksp, const Variant& variant);
// Fills the iterate and its residual.
PetscErrorCode begin_residual(KSP ksp, Mat matrix, uint32_t residual);
// Whether the norm of r, or of u, is wanted besides (r, u).
bool takes_norm(KSP ksp);
// Tells PETSc of ksp->rnorm, and sets the reason to end if there is one. `gamma`: (r, u); `curvature`: of A along the
// search direction.
PetscErrorCode test_convergence(KSP ksp, PetscInt iteration, PetscScalar gamma, PetscScalar curvature);

// Post, and wait, under -log_view's eyes; -info shows programs.
PetscErrorCode register_events();
PetscErrorCode post(KSP ksp, const offpath_program_t& program, const offpath_crossing_t& crossing);
PetscErrorCode wait(KSP ksp);
// Statements for this process, in one pass over its rows.
PetscErrorCode run_here(KSP ksp, std::span<const offpath_statement_t> statements);

PetscErrorCode create_pipecg(KSP ksp);
PetscErrorCode create_cg(KSP ksp);
PetscErrorCode create_split(KSP ksp);

}  // namespace offpath::petsc
