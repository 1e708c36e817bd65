// SPDX-License-Identifier: BSD-3-Clause
// The one-sided operations that are measured: messages of one kind from an origin to its target, completed by one
// flush.
//
// The lower half of the ranks are origins, each with a target of its own in the upper half.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../apps/kit/ranks.hpp"
#include "rma.hpp"

namespace bench {

// put_rate: many messages before a flush, else one.
enum class Kind { put, get, fetch_and_op, put_rate };
inline constexpr const char* kKinds[] = {"put", "get", "fetch_and_op", "put_rate"};

class Operation {
 public:
  // Collective. messages of bytes each, to places of their own; fetch_and_op: of 8 bytes, all to one place.
  Operation(Kind kind, std::int64_t bytes, int messages);

  bool is_origin() const { return kit::rank() < kit::ranks() / 2; }

  // Origins: issues everything; completes everything.
  void start();
  void finish() { memory_.flush(partner_); }

  // Origins, around a communication: content of that round's own and nothing where it has to arrive; whether it has. Both
  // move data themselves, the other way round: what a put wrote is got back, what a get reads is put there before.
  void renew(int round);
  bool is_right(int round);
  // Both sides, behind a barrier: what the last round left at the target, after so many communications.
  bool verify(int last_round, std::int64_t communications);

  // Origins: tells the target that there is nothing to wait for any more. Targets: whether it was told, once more.
  void tell_target();
  bool was_told();

 private:
  std::int64_t flag_offset() const { return std::int64_t(data_.size()); }
  void fill(char* data, int rank, int round) const;

  Kind kind_;
  std::int64_t bytes_;
  int messages_;
  std::int64_t addend_ = 7, fetches_ = 0, heard_ = 0;
  std::vector<char> data_;   // the origin's side
  std::vector<char> check_;  // what should be there
  rma::Memory memory_;       // the target's, and behind it the flag
  int partner_;
  std::vector<std::int64_t> fetched_;
};

}  // namespace bench
