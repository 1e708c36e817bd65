// SPDX-License-Identifier: BSD-3-Clause
// Collectives that move bytes and compute nothing.
#pragma once

#include "operation.hpp"

#include <cstdint>

namespace bench {

class Movement : public Operation {
 public:
  enum class Kind { alltoall, alltoallv, allgather, allgatherv, gather, scatter, bcast };

  Movement(Kind kind, std::int64_t bytes, const std::string& field, MPI_Comm communicator);

  void start(MPI_Request* request) override;
  void prepare(int round) override;
  bool verify(int round) const override;

 private:
  // Blocks of one buffer, one after the other. Block i goes to or comes from rank peers[i].
  struct Side {
    std::vector<int> peers, counts, displs;
    std::vector<std::uint8_t> bytes;

    void add(int peer, std::int64_t count);
  };

  // What rank `from` gives rank `to`; around the block's size where counts may differ, by a rule that both know.
  std::int64_t count(int from, int to) const;
  // The receiver as far as the content depends on it: what goes to everybody is the same for everybody.
  int addressee(int to) const;

  // Byte `at` of what `from` sends `to` in that round.
  std::uint8_t byte(int from, int to, int round, std::int64_t at) const;

  Kind kind_;
  MPI_Comm communicator_;
  int rank_ = 0, ranks_ = 1;
  std::int64_t block_ = 0;
  Side send_, receive_;
  std::vector<std::uint8_t> field_;  // each block begins at a number of its own in it
};

}  // namespace bench
