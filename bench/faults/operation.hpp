// SPDX-License-Identifier: BSD-3-Clause
// One nonblocking collective, or a message to one rank and from one, with buffers of its own. All that it is to deliver is known
// in advance, and also what it is to leave as it was.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <mpi.h>

namespace faults {

inline constexpr const char* kKinds[] = {"ialltoall", "ialltoallv", "iallreduce",
                                         "ibcast",    "iallgather", "ireduce",
                                         "igather",   "iscatter",   "ireduce_scatter_block",
                                         "isend",     "issend",     "probe"};
enum class Kind {
  alltoall,
  alltoallv,
  allreduce,
  bcast,
  allgather,
  reduce,
  gather,
  scatter,
  reduce_scatter_block,
  send,
  synchronous_send,
  probe,  // for a message, which is received then
};
constexpr bool is_message(Kind kind) { return kind >= Kind::send; }

// An element and a gap of the same size.
class SpacedType {
 public:
  SpacedType() {
    MPI_Type_create_resized(MPI_UINT32_T, 0, 2 * sizeof(std::uint32_t), &type_);
    MPI_Type_commit(&type_);
  }
  ~SpacedType() { MPI_Type_free(&type_); }
  SpacedType(const SpacedType&) = delete;
  SpacedType& operator=(const SpacedType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// The same on all ranks, as all draw from the same numbers.
struct Choice {
  Kind kind;
  std::uint32_t number;  // of the operation: no other one has its values
  int count, root;       // elements of a block; of a message: so many ranks further
  bool in_place, spaced;
  bool persistent;  // started several times, each with other values
  MPI_Op operation;

  static Choice draw(std::mt19937& random, const std::vector<Kind>& kinds, int bytes, int ranks, bool persistent,
                     std::uint32_t number);
};

class Operation {
 public:
  // `spaced`: the type of the elements where the choice says so. A persistent one that is not yet at its end is started
  // again with the number, and the rest of the choice is left. The call's code, whatever it is: on all ranks the operation
  // is under way from then on, or they would no longer do the same.
  int post(const Choice& choice, MPI_Comm comm, MPI_Datatype spaced);
  bool under_way() const { return under_way_; }
  bool posted() const { return posted_; }  // without it there is nothing to wait for
  // Before anybody waits for the request of what probes: receives.
  int receive();
  int end_sending();  // of a message. Of what probes: once its receiver has
  MPI_Request& request() { return request_; }
  void end();    // when it is complete, well or not
  void close();  // after the last one
  const Choice& choice() const { return choice_; }
  // To be asked when it is complete. The first element that is wrong.
  std::optional<std::size_t> wrong() const;

 private:
  int begin(MPI_Comm comm, MPI_Datatype type);
  void fill();
  int call(MPI_Comm comm, MPI_Datatype type);
  int exchange(MPI_Comm comm, MPI_Datatype type);
  int source() const { return (rank_ + choice_.root) % ranks_; }
  int tag() const { return int(choice_.number) + 1; }
  std::uint32_t value(int from, int to, int at) const;
  std::uint32_t reduced(int to, int at) const;
  int length(int from, int to) const;  // of a block of an alltoallv
  std::optional<std::uint32_t> expected(int block, int at) const;

  Choice choice_{};
  int rank_ = 0, ranks_ = 1;
  std::vector<std::uint32_t> send_, receive_;
  std::vector<int> send_counts_, receive_counts_, displacements_;
  MPI_Request request_ = MPI_REQUEST_NULL, sent_ = MPI_REQUEST_NULL;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool under_way_ = false, posted_ = false;
  std::uint32_t first_number_ = 0;  // lengths of blocks are those of the first start
  int starts_left_ = 0;             // of a persistent one
};

}  // namespace faults
