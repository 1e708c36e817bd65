// SPDX-License-Identifier: BSD-3-Clause
// A team with random memory, one collective of it, and what the memory must hold afterwards.
#pragma once

#include "interpreter.hpp"

namespace offpath::testing {

struct Case {
  offpath_collective_kind_t kind = OFFPATH_BARRIER;
  offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT;
  std::vector<uint64_t> node_keys;
  uint32_t root = 0;
  uint64_t bytes = 0;  // of the vector; allgather and reduce_scatter: about that much per member
  bool in_place = false;
  bool layouts = false;
  bool equal = true;  // allgather, reduce_scatter: all blocks have the same length
  bool copy_own_blocks = true;
  ops::Tuning tuning{64, 4096, 4, 1 << 20};
  Operator combine = add;

  std::string text() const;
};

class Team {
 public:
  Team(const Case& c, uint64_t seed);

  // Runs it in a random order; empty if all is right, else what is not.
  std::string run(uint64_t seed);

  std::vector<ops::Collective> collectives;  // by member
  std::vector<Machine> machines;
  uint64_t wire_bytes_into(uint32_t node) { return wire_bytes_[node]; }
  // What lies in a block of a member.
  std::vector<uint8_t> content(uint32_t member, const ops::Block& block) const;
  // What must lie in a member's memory afterwards.
  const std::vector<uint8_t>& expected(uint32_t member) const { return expected_[member]; }

 private:
  // Memory for a block, with other bytes around it.
  ops::Block place(uint32_t member, uint64_t bytes, bool layout, uint32_t peer = 0, uint32_t tag = 0);
  void make_exchange();
  void make_rooted_or_vector(uint32_t member);
  void make_allgather(uint32_t member, const std::vector<uint64_t>& counts);
  void make_reduce_scatter(uint32_t member, const std::vector<uint64_t>& counts);
  void expect();
  void expect_block(uint32_t member, const ops::Block& block, const std::vector<uint8_t>& bytes);
  std::vector<uint8_t> combined(uint32_t first, uint32_t last) const;

  Case case_;
  std::mt19937_64 random_;
  uint32_t size_;
  uint32_t short_blocks_ = 0;
  std::vector<std::vector<uint8_t>> expected_;
  std::map<uint32_t, uint64_t> wire_bytes_;
};

}  // namespace offpath::testing
