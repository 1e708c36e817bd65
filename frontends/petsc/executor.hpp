// SPDX-License-Identifier: BSD-3-Clause
// Executor: who works off a solver's vector programs: the service, or this process with the same kernels. Which of them
// is decided once per solver, alike on all its ranks.
//
// Threads: PETSc's. Errors: PETSc's; texts go to PetscError. A service that is lost while it has something to do ends
// the solve with PETSC_ERR_LIB: the vectors are half updated then, and the other ranks may be an iteration ahead.
#pragma once

#include <offpath/offpath.h>
#include <petscksp.h>

#include <memory>
#include <span>
#include <string>

namespace offpath::petsc {

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // Memory for scalars, a vector or a part of a matrix, zeroed; null when there is none. It is freed with the executor.
  // Where ranks share a leader, these two are collective over them, in the same order.
  virtual void* allocate(uint64_t bytes) = 0;
  virtual void release(void* memory) = 0;  // what allocate() gave
  // Bytes that the same call of allocate() gave to the ranks before this one that share its leader: whoever works on
  // the memory sees them as one array.
  virtual uint64_t offset_of(const void* memory) const = 0;
  // Whether programs may multiply rows of matrices.
  virtual bool multiplies() const = 0;
  // Programs are done by the service, not by this process.
  virtual bool offloads() const = 0;
  // Whether vectors are where programs work on them; else only what crosses is.
  virtual bool shares_memory() const { return true; }
  // Starts a program, after those posted before. It may be copied before the call returns, what it works on not.
  virtual PetscErrorCode post(const offpath_program_t& program, const offpath_crossing_t& crossing) = 0;
  // Until all that was posted is done.
  virtual PetscErrorCode wait() = 0;
  // For -ksp_view.
  virtual std::string describe() const = 0;
};

// The arrays must outlive it.
inline offpath_crossing_t crossing_of(std::span<const uint32_t> in, std::span<const uint32_t> out = {},
                                      uint32_t flags = 0) {
  return {sizeof(offpath_crossing_t),       flags, in.data(), out.data(), static_cast<uint32_t>(in.size()),
          static_cast<uint32_t>(out.size())};
}

std::unique_ptr<Executor> make_host_executor(MPI_Comm comm);
// Runs a program's scalar steps `before` and its statements in this process.
PetscErrorCode run_pass(const offpath_program_t& program);
// Collective. Null on all ranks, with the reason, when a rank cannot have a service.
PetscErrorCode make_service_executor(MPI_Comm comm, std::unique_ptr<Executor>* executor, std::string* reason);
// Collective. The same, but only `leaders` ranks of each node talk to the service, for themselves and for an equal
// share of its other ranks; 0: all ranks do.
PetscErrorCode make_onloaded_executor(MPI_Comm comm, PetscInt leaders, std::unique_ptr<Executor>* executor,
                                      std::string* reason);

// Lets MPI get on with what other ranks want of this one; for those who wait, between two sleeps.
PetscErrorCode progress(MPI_Comm comm);

}  // namespace offpath::petsc
