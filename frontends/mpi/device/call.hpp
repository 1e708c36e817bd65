// SPDX-License-Identifier: BSD-3-Clause
// One MPI call of a region: an upcall to the proxy in the host process.
//
// Threads: any; one object by one at a time. Only wait() blocks. A call must be waited for, or tested until done,
// before it is destroyed: the answer is written into it.
#pragma once

#include "mpi/regions/names.hpp"

#include <cstdint>

namespace offpath::regions {

struct Buffer {
  void* data = nullptr;
  uint64_t bytes = 0;
};

class UpCall {
 public:
  UpCall() = default;
  ~UpCall() { wait(); }
  UpCall(const UpCall&) = delete;
  UpCall& operator=(const UpCall&) = delete;

  // input must stay unchanged and output unread until done. Returns an MPI error class; then nothing was posted.
  int post(const Arguments& arguments, Buffer input = {}, Buffer output = {});
  // Whether it is answered.
  bool test();
  // Sleeps until it is. The MPI error class.
  int wait();
  const Result& result() const { return result_; }

 private:
  int ended(int32_t status);

  uint64_t id_ = 0;  // 0: nothing underway
  Result result_{};
};

// Posts and waits.
int call(const Arguments& arguments, Result* result, Buffer input = {}, Buffer output = {});

// The names of handles in the protocol.
uint64_t comm_name(MPI_Comm comm);
uint64_t type_name(MPI_Datatype type);
uint64_t operator_name(MPI_Op operation);

// An elementary check of (count, type) that every call with a buffer makes; *bytes and *name are set if MPI_SUCCESS.
int measure(int count, MPI_Datatype type, uint64_t* bytes, uint64_t* name);

inline Arguments arguments_of(Call kind, MPI_Comm comm) {
  Arguments arguments{};
  arguments.call = kind;
  arguments.mpi = kOwnMpi;
  arguments.handle = comm_name(comm);
  return arguments;
}

}  // namespace offpath::regions
