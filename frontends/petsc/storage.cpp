// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/storage.hpp"

#include "petsc/job.hpp"

namespace offpath::petsc {

Storage::~Storage() {
  for (Vec& vec : vecs_) PetscCallAbort(PETSC_COMM_SELF, VecDestroy(&vec));
}

bool Storage::allocate(uint32_t vectors, uint32_t scalars) {
  scalars_count_ = scalars;
  scalars_ = static_cast<double*>(executor_->allocate(scalars * sizeof(double)));
  bool all = scalars_ != nullptr;
  for (uint32_t i = 0; i < vectors && all; ++i) {
    arrays_.push_back(static_cast<double*>(executor_->allocate(rows_ * sizeof(double))));
    all = arrays_.back() != nullptr;
  }
  return all;
}

// A DPU may have less memory than its host.
PetscErrorCode Storage::try_there(MPI_Comm comm, std::string* reason) {
  PetscFunctionBegin;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr));
  PetscErrorCode error = executor_->post(program(), crossing_of({}));
  if (error == 0) error = executor_->wait();
  PetscCall(PetscPopErrorHandler());
  const int own = error == 0 ? 1 : 0;
  int all = 0;
  PetscCallMPI(MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm));
  if (all == 0) *reason = "the solver's vectors do not fit into the memory of a DPU (they may have half of it)";
  PetscFunctionReturn(0);
}

PetscErrorCode Storage::wrap(MPI_Comm comm, Vec like) {
  PetscFunctionBegin;
  PetscInt local, global, block;
  PetscMPIInt size;
  PetscCall(VecGetLocalSize(like, &local));
  PetscCall(VecGetSize(like, &global));
  PetscCall(VecGetBlockSize(like, &block));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  for (double* array : arrays_) {
    Vec vec;
    if (size == 1) {
      PetscCall(VecCreateSeqWithArray(comm, block, local, array, &vec));
    } else {
      PetscCall(VecCreateMPIWithArray(comm, block, local, global, array, &vec));
    }
    vecs_.push_back(vec);
  }
  PetscFunctionReturn(0);
}

PetscErrorCode Storage::create(KSP ksp, Vec like, uint32_t vectors, uint32_t scalars, PetscInt leaders,
                               std::unique_ptr<Storage>* out) {
  PetscFunctionBegin;
  const MPI_Comm comm = PetscObjectComm(reinterpret_cast<PetscObject>(ksp));
  std::unique_ptr<Storage> storage(new Storage);
  PetscInt local;
  PetscCall(VecGetLocalSize(like, &local));
  storage->rows_ = static_cast<uint64_t>(local);
  std::string reason;
  PetscCall(make_onloaded_executor(comm, leaders, &storage->executor_, &reason));
  if (storage->executor_ != nullptr) {
    const int own[] = {storage->allocate(vectors, scalars) ? 1 : 0, storage->executor_->shares_memory() ? 1 : 0};
    int all[] = {0, 0};
    PetscCallMPI(MPI_Allreduce(own, all, 2, MPI_INT, MPI_MIN, comm));
    storage->is_far_ = all[0] == 1 && all[1] == 0;
    if (all[0] == 0) reason = "the solver's vectors do not fit into shared memory (OFFPATH_SHARED_MEMORY_BYTES)";
    if (storage->is_far_) PetscCall(storage->try_there(comm, &reason));
    if (!reason.empty()) {
      storage->is_far_ = false;
      storage->executor_.reset();
      storage->arrays_.clear();
    }
  }
  if (storage->executor_ == nullptr) {
    PetscCall(PetscInfo(ksp, "Offpath: the host does the vector work: %s\n", reason.c_str()));
    note_host(reason);
    storage->executor_ = make_host_executor(comm);
    PetscCheck(storage->allocate(vectors, scalars), PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory for the solver");
  }
  PetscCall(storage->wrap(comm, like));
  *out = std::move(storage);
  PetscFunctionReturn(0);
}

offpath_program_t Storage::program() {
  offpath_program_t out{};
  out.struct_bytes = sizeof(out);
  out.scalars = scalars_;
  out.scalars_count = scalars_count_;
  out.vectors = arrays_.data();
  out.vectors_count = static_cast<uint32_t>(arrays_.size());
  out.rows = rows_;
  return out;
}

}  // namespace offpath::petsc
