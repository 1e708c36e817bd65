// SPDX-License-Identifier: BSD-3-Clause
// Our requests among those of one call of the application.
#pragma once

#include "engine.hpp"

#include <mpi.h>

#include <vector>

namespace offpath::mpi {

// Finds our operations in an array of requests and holds them while it lives, so that what became of them can be told
// after the native call has freed the requests.
class OwnRequests {
 public:
  OwnRequests(int count, const MPI_Request* requests);
  ~OwnRequests();
  OwnRequests(const OwnRequests&) = delete;
  OwnRequests& operator=(const OwnRequests&) = delete;

  bool empty() const { return own_.empty(); }
  bool all_finished() const;
  bool only_ours(int count) const { return static_cast<size_t>(count) == own_.size(); }

  // The operation at `index` if it failed, else nullptr.
  const Operation* failed_at(int index) const;
  // First failed operation, or nullptr.
  const Operation* any_failed() const;

 private:
  struct Entry {
    int index;
    Operation* operation;
  };
  std::vector<Entry> own_;  // by index
};

// Calls the error handler of the communicator the operation was on.
int raise_failure(const Operation& operation, int code);

}  // namespace offpath::mpi
