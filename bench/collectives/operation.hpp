// SPDX-License-Identifier: BSD-3-Clause
// One nonblocking collective of a given size: buffers, counts, the call, the check of what came out.
//
// bytes: all that a rank sends or receives, whichever is more. alltoall: ranks x block; allgather, gather, scatter: the
// whole; bcast, reductions: the vector; reduce_scatter: the vector that is sent. What must be cut into blocks is
// rounded down to whole elements, at least one for each rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

namespace bench {

class Operation {
 public:
  virtual ~Operation() = default;
  virtual void start(MPI_Request* request) = 0;
  // Writes new content to send and spoils what was received, so that a collective that did nothing is found out.
  virtual void prepare(int round) = 0;
  // All that was received is what the ranks sent in that round.
  virtual bool verify(int round) const = 0;
};

// The names that make_operation takes, like ialltoall.
std::vector<std::string> collectives();

// Prepared for round 0. Collective; nullptr for a name that is not in collectives().
std::unique_ptr<Operation> make_operation(const std::string& collective, std::int64_t bytes, MPI_Comm communicator);

}  // namespace bench
