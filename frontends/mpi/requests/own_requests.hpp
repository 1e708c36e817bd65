// SPDX-License-Identifier: BSD-3-Clause
// Our requests among those of one call of the application.
#pragma once

#include "mpi/lanes/offloader.hpp"
#include "mpi/requests/persistent.hpp"

#include <mpi.h>

#include <vector>

namespace offpath::mpi {

// Finds our operations in an array of requests and holds them while it lives, so that what became of them can be told
// after the native call has freed the requests. Exchanges persistent requests for those that stand for them.
class OwnRequests {
 public:
  OwnRequests(int count, MPI_Request* requests);
  ~OwnRequests();
  OwnRequests(const OwnRequests&) = delete;
  OwnRequests& operator=(const OwnRequests&) = delete;

  // What the native function is to be called with, and what is to be done with its answer: gives the application its
  // handles back. Returns `code`.
  MPI_Request* natives() { return exchanged_.empty() ? requests_ : exchanged_.data(); }
  int settle(int code);

  bool empty() const { return own_.empty(); }
  bool all_finished() const;
  // Whether one of them has not ended at the service.
  bool any_at_service() const;
  bool only_ours(int count) const { return static_cast<size_t>(count) == own_.size(); }

  // The operation at `index` if it failed, else nullptr.
  const Requested* failed_at(int index) const;
  // First failed operation, or nullptr.
  const Requested* any_failed() const;

 private:
  struct Entry {
    int index;
    Requested* operation;
  };
  struct Standing {
    int index;
    Persistent* persistent;
  };
  MPI_Request* requests_;
  std::vector<Entry> own_;              // by index
  std::vector<Standing> standing_;      // by index
  std::vector<MPI_Request> exchanged_;  // all requests, if any had to be exchanged
};

}  // namespace offpath::mpi
