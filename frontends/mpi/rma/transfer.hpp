// SPDX-License-Identifier: BSD-3-Clause
// One call that communicates (MPI_Put to MPI_Rget_accumulate), whichever form it has, and how it becomes operations of
// the service.
//
// Threads: any.
#pragma once

#include "mpi/lanes/requested.hpp"
#include "mpi/rma/offloaded_window.hpp"
#include "mpi/rma/origin.hpp"
#include "mpi/rma/submission.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstdint>
#include <memory>

namespace offpath::mpi {

struct Transfer {
  offpath_remote_kind_t kind;
  int target;
  int64_t displacement;
  int64_t count;  // at the target
  MPI_Datatype type;
  Local send{};                   // what the kind sends
  Local result{};                 // where to what it fetches goes
  MPI_Op op = MPI_OP_NULL;        // accumulates
  const void* compare = nullptr;  // compare and swap
  bool predefined = false;        // no derived datatypes here
};

// The request of a transfer.
class TransferRequest : public Loose {
 public:
  // `call`: that posts it.
  TransferRequest(const char* call, std::shared_ptr<OffloadedWindow> window) : call_(call), window_(std::move(window)) {
    window_->count_request(1);
  }
  ~TransferRequest() override;

  Submission& submission() { return submission_; }
  // It went natively, and this is the program's request.
  void hand_over(MPI_Request native) { native_ = native; }
  MPI_Request native() const { return native_; }
  void deliver_to(std::shared_ptr<Staged> result) { result_ = std::move(result); }

  int raise(int code) const override { return window_->raise(call_, code); }
  bool advance() override;

 private:
  const char* const call_;
  std::shared_ptr<OffloadedWindow> window_;
  Submission submission_;
  MPI_Request native_ = MPI_REQUEST_NULL;
  std::shared_ptr<Staged> result_;
};

// Checks the call and posts what it asks for. `request`: nullptr without one. MPI error class; no handler was called.
// Inside. May throw bad_alloc.
int start(OffloadedWindow& window, const Transfer& transfer, TransferRequest* request);

}  // namespace offpath::mpi
