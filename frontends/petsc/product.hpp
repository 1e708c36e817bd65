// SPDX-License-Identifier: BSD-3-Clause
// Product: y = A x with a share of the rows done by the service (intra-op offloading, -ksp_offpath_phi). The service
// gets the first rows of the local diagonal block; the host multiplies a copy of the matrix that lacks them, so entries
// in other ranks' columns stay with PETSc, and adds the service's part in the end.
#pragma once

#include "petsc/storage.hpp"

namespace offpath::petsc {

class Product {
 public:
  // `phi` in [0, 1): of the rows; negative: as many as make both sides equally long, by measurement. `part`: a vector
  // of the storage that takes the service's part. `post_busy` posts what the service has to do besides in each
  // iteration; null: nothing. Collective; without a service, with another kind of matrix than AIJ, or without room all
  // is left to the host, with a line under -info.
  PetscErrorCode prepare(KSP ksp, Storage& storage, Mat matrix, double phi, uint32_t part,
                         PetscErrorCode (*post_busy)(KSP));
  double phi() const { return phi_; }
  // The host's part; the service's is posted before.
  PetscErrorCode begin(KSP ksp, Storage& storage, Mat matrix, uint32_t x, uint32_t y);
  // After the executor's wait().
  PetscErrorCode end(Storage& storage, uint32_t y);
  PetscErrorCode reset();
  ~Product() { PetscCallAbort(PETSC_COMM_SELF, reset()); }

 private:
  PetscErrorCode take(KSP ksp, Storage& storage, Mat matrix, double phi, bool* taken);
  PetscErrorCode copy_rows(Storage& storage, Mat matrix, bool* fits);
  PetscErrorCode make_rest(Mat matrix);
  PetscErrorCode measure(KSP ksp, Storage& storage, Mat matrix, PetscErrorCode (*post_busy)(KSP), double* phi);
  PetscErrorCode post(Storage& storage, uint32_t x);

  double phi_ = 0;
  PetscObjectState state_ = -1;  // of the matrix that was prepared
  PetscObjectId matrix_ = 0;
  uint32_t part_ = 0;
  uint64_t rows_ = 0;      // of the service
  bool is_there_ = false;  // a program has named them
  offpath_matrix_rows_t share_{};
  std::vector<void*> memory_;
  Executor* executor_ = nullptr;
  Mat rest_ = nullptr;
};

}  // namespace offpath::petsc
