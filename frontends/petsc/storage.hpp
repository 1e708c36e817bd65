// SPDX-License-Identifier: BSD-3-Clause
// Storage: a solver's scalars and vectors, in memory that its executor works on. The vectors are PETSc's too (Vec).
#pragma once

#include "petsc/executor.hpp"

#include <petsc/private/kspimpl.h>

#include <memory>
#include <string>
#include <vector>

namespace offpath::petsc {

class Storage {
 public:
  // Collective: with the service, or where a rank cannot have it, or not as much memory, on the host, with one line
  // under -info that says why. `like` gives layout and type. `leaders`: see make_onloaded_executor().
  static PetscErrorCode create(KSP ksp, Vec like, uint32_t vectors, uint32_t scalars, PetscInt leaders,
                               std::unique_ptr<Storage>* out);
  ~Storage();

  Executor& executor() { return *executor_; }
  // Some rank's vectors stay with a service on another machine; the same on all ranks.
  bool is_far() const { return is_far_; }
  double& scalar(uint32_t index) { return scalars_[index]; }
  Vec vec(uint32_t index) const { return vecs_[index]; }
  double* array(uint32_t index) const { return arrays_[index]; }
  uint64_t rows() const { return rows_; }
  // The number of this rank's first row in the vectors as the executor sees them.
  uint64_t first_row() const { return executor_->offset_of(arrays_[0]) / sizeof(double); }
  // Scalars and vectors filled in.
  offpath_program_t program();

 private:
  Storage() = default;
  bool allocate(uint32_t vectors, uint32_t scalars);
  // Collective. Whether all services have room for the vectors; else why not.
  PetscErrorCode try_there(MPI_Comm comm, std::string* reason);
  PetscErrorCode wrap(MPI_Comm comm, Vec like);

  std::unique_ptr<Executor> executor_;
  bool is_far_ = false;
  uint64_t rows_ = 0;
  uint32_t scalars_count_ = 0;
  double* scalars_ = nullptr;
  std::vector<double*> arrays_;
  std::vector<Vec> vecs_;
};

}  // namespace offpath::petsc
