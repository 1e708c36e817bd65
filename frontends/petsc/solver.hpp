// SPDX-License-Identifier: BSD-3-Clause
// What the solvers share: storage made at set-up, and what PETSc asks of a KSP besides solving.
#pragma once

#include "petsc/description.hpp"
#include "petsc/product.hpp"
#include "petsc/storage.hpp"

namespace offpath::petsc {

struct Solver {
  Names names;
  std::unique_ptr<Storage> storage;
  Product product;
  double phi = 0;         // -ksp_offpath_phi; negative: auto
  PetscInt leaders = 0;   // -ksp_offpath_leaders; 0: every rank
  uint32_t solution = 0;  // index of the iterate among the vectors
  bool solving = false;   // the iterate is ahead of the KSP's own vector
};

inline Solver& solver_of(KSP ksp) { return *static_cast<Solver*>(ksp->data); }

// A KSP of this kind: left preconditioning, all norms.
PetscErrorCode create_solver(KSP ksp, PetscErrorCode (*setup)(KSP), PetscErrorCode (*solve)(KSP), uint32_t solution);
// To be called by `setup`. The names are static; there are as many vectors and scalars.
PetscErrorCode make_storage(KSP ksp, const Names& names);
// Fills the iterate and its residual.
PetscErrorCode begin_residual(KSP ksp, Mat matrix, uint32_t solution, uint32_t residual);
// Prepares the product (`part`, `post_busy`: see there), runs both, and hands the iterate back.
PetscErrorCode run_solver(KSP ksp, PetscErrorCode (*start)(KSP, Mat), PetscErrorCode (*iterate)(KSP, Mat),
                          uint32_t part, PetscErrorCode (*post_busy)(KSP));
// Copies the iterate to where PETSc looks for it.
PetscErrorCode hand_back(KSP ksp);

// Post, and wait, under -log_view's eyes; -info shows programs.
PetscErrorCode register_events();
PetscErrorCode post(KSP ksp, const offpath_program_t& program);
PetscErrorCode wait(KSP ksp);
// Statements for this process, in one pass over its rows.
PetscErrorCode run_here(KSP ksp, std::span<const offpath_statement_t> statements);

PetscErrorCode create_pipecg(KSP ksp);
PetscErrorCode create_cg(KSP ksp);

}  // namespace offpath::petsc
