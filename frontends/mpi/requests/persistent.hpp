// SPDX-License-Identifier: BSD-3-Clause
// Persistent collectives that are offloaded. The application holds the native library's persistent request, which is
// never started; each start makes a request that stands for it.
#pragma once

#include "mpi/calls/call.hpp"
#include "mpi/lanes/lane.hpp"
#include "mpi/native/standing.hpp"

#include <memory>

namespace offpath::mpi {

class Persistent : public Standing {
 public:
  // `lane`: its own; the offloader's.
  Persistent(std::shared_ptr<const Call> call, Lane& lane) : call_(std::move(call)), lane_(lane) {}
  ~Persistent() override;
  int start(MPI_Request* handle) override;

 private:
  int issue();

  std::shared_ptr<const Call> call_;
  Lane& lane_;
};

}  // namespace offpath::mpi
