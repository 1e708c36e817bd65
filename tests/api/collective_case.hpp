// SPDX-License-Identifier: BSD-3-Clause
// Case: one collective of any kind with arguments that all members derive from the same numbers, and what it must give.
// Blocks are contiguous or strided as the seed says; gaps between them must stay as they were.
#pragma once

#include "job.hpp"

#include <vector>

namespace offpath::testing {

// Bytes of one block, contiguous or in elements of 4 data bytes (1 + 3) every 8 bytes.
class Buffer {
 public:
  Buffer(uint64_t bytes, bool strided)
      : bytes_(bytes), strided_(strided), memory_(strided ? (bytes + 3) / 4 * 8 + 1 : bytes + 1, kUntouched) {}
  uint8_t& operator[](uint64_t at) { return memory_[place(at)]; }
  offpath_block_t block(uint32_t peer = 0, uint32_t tag = 0) const {
    return {peer, tag, memory_.data(), bytes_, strided_ ? 1u : 0u};
  }
  // Nothing but data bytes from..to was written.
  bool untouched_but(uint64_t from, uint64_t to) const;
  bool operator==(const Buffer&) const = default;
  uint64_t bytes() const { return bytes_; }
  uint8_t* data() { return memory_.data(); }

  static constexpr uint8_t kUntouched = 0xEE;
  static constexpr offpath_range_t kRanges[2] = {{0, 1}, {2, 3}};
  static constexpr offpath_layout_t kLayout = {4, 8, kRanges, 2};

 private:
  uint64_t place(uint64_t at) const { return strided_ ? at / 4 * 8 + at % 4 + (at % 4 != 0) : at; }
  uint64_t bytes_;
  bool strided_;
  std::vector<uint8_t> memory_;
};

class Case {
 public:
  // All members name the same arguments. `bytes`: about how long the blocks are.
  Case(const Process& process, offpath_collective_kind_t kind, uint64_t bytes, uint64_t seed,
       offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT);
  void post(offpath_team_t* team);
  // Waits for it, looks at all buffers and frees it. Ends the process when something is wrong.
  void finish();
  offpath_op_t* operation() const { return op_; }

 private:
  struct Expected {
    Buffer buffer;
    std::vector<uint8_t> data;  // its first bytes afterwards; the rest is untouched
  };
  uint64_t number(uint64_t a, uint64_t b, uint64_t c = 0) const;  // the same on all members
  std::vector<uint8_t> bytes_of(uint32_t from, uint32_t to, uint32_t tag, uint64_t length) const;
  bool strided(uint64_t which) const { return number(100 + which, process_.rank) % 2 == 0; }
  void send(std::vector<uint8_t> data, bool is_strided, uint32_t peer = 0, uint32_t tag = 0);
  void receive(std::vector<uint8_t> data, uint64_t capacity, bool is_strided, uint32_t peer = 0, uint32_t tag = 0);
  // One buffer for both: `before` is sent, `after` lies there in the end.
  void in_place(const std::vector<uint8_t>& before, std::vector<uint8_t> after, uint64_t receive_bytes);

  void exchange(uint64_t bytes);
  void bcast(uint64_t bytes);
  void allgather(uint64_t bytes);
  void reduce(uint64_t bytes);
  // Sum of the members first..last-1, as bytes.
  std::vector<uint8_t> sum_of(uint32_t first, uint32_t last, uint64_t bytes) const;

  const Process& process_;
  uint64_t seed_;
  offpath_collective_t c_{};
  std::vector<Expected> sent_, received_;
  std::vector<offpath_block_t> send_blocks_, recv_blocks_;
  std::vector<uint64_t> counts_;
  offpath_op_t* op_ = nullptr;
};

inline constexpr offpath_collective_kind_t kAllKinds[] = {OFFPATH_EXCHANGE,       OFFPATH_BARRIER, OFFPATH_BCAST,
                                                          OFFPATH_ALLGATHER,      OFFPATH_REDUCE,  OFFPATH_ALLREDUCE,
                                                          OFFPATH_REDUCE_SCATTER, OFFPATH_SCAN,    OFFPATH_EXSCAN};

}  // namespace offpath::testing
