// SPDX-License-Identifier: BSD-3-Clause
// A native request, then the answer of the upcall it is for.
#pragma once

#include "mpi/proxy/contexts.hpp"
#include "mpi/proxy/progress.hpp"
#include "mpi/proxy/upcall.hpp"

#include <mpi.h>

#include <memory>

namespace offpath::mpi::regions {

class NativeTask : public Task {
 public:
  NativeTask(Upcall upcall, std::shared_ptr<Contexts> contexts)
      : upcall_(std::move(upcall)), contexts_(std::move(contexts)) {}

  Upcall& upcall() { return upcall_; }
  MPI_Request* request() { return &request_; }
  bool advance() override;
  void lose(uint64_t channel) override;
  void give_up() override;

 private:
  bool receives() const { return upcall_.arguments().call == Call::recv; }

  Upcall upcall_;
  std::shared_ptr<Contexts> contexts_;  // its communicators stay until this is over
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace offpath::mpi::regions
