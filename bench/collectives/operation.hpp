// SPDX-License-Identifier: BSD-3-Clause
// One nonblocking operation of a given size: buffers, counts, the calls, the check of what came out. Programs that measure
// what hides behind computation differ in what operations they have: each has its own definitions of the functions below.
//
// bytes of a collective: all that a rank sends or receives, whichever is more. alltoall: ranks x block; allgather, gather, scatter: the
// whole; bcast, reductions: the vector; reduce_scatter: the vector that is sent. What must be cut into blocks is
// rounded down to whole elements, at least one for each rank. Of a message: its length.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

namespace bench {

inline constexpr int kRoot = 0;  // of collectives that have one

class Operation {
 public:
  virtual ~Operation() = default;
  // All calls of one operation are given the same array of so many, MPI_REQUEST_NULL at first.
  virtual int requests() const { return 1; }
  // Before the ranks meet and the clock runs.
  virtual void post(MPI_Request*) {}
  virtual void start(MPI_Request* requests) = 0;
  // Half of the work is done.
  virtual void halfway(MPI_Request*) {}
  // Writes new content to send and spoils what was received, so that a collective that did nothing is found out.
  virtual void prepare(int round) = 0;
  // All that was received is what the ranks sent in that round.
  virtual bool verify(int round) const = 0;
};

// What differs by sender, receiver, round and place; cheap enough for gigabytes.
inline std::uint8_t content(int from, int to, int round, std::int64_t at) {
  return std::uint8_t(31 * from + 17 * to + 7 * round + at + (at >> 8) + (at >> 16));
}

// What the program says of itself.
struct Words {
  const char* program;
  const char* option;  // and, without its dashes, the field of its results, that name what is measured
  const char* about;   // --help: how much of what
  const char* names;   // --help: of the names
  const char* bytes;   // --help: of which bytes
  const char* usual;   // one of the names
};
Words words();

// The names that make_operation takes, like ialltoall.
std::vector<std::string> operations();

// Empty where so many ranks will do, else one line for the user.
std::string refused(int ranks);

// Prepared for round 0. Collective; nullptr for a name that is not in operations(). `field`: of bench/codecs/fields.hpp; what
// operations that move data send. Empty: content() above.
std::unique_ptr<Operation> make_operation(const std::string& name, std::int64_t bytes, const std::string& field,
                                          MPI_Comm communicator);

}  // namespace bench
