// SPDX-License-Identifier: BSD-3-Clause
// A window's operations that a loss has ended, or kept from beginning, at their origin: the processes of their targets are
// asked to carry them out. They are asked for in the order of posting, as what is atomic keeps that order.
//
// Threads: one at a time. What sends: Inside.
#pragma once

#include "client/kept.hpp"
#include "mpi/rma/letters.hpp"
#include "remote/record.hpp"

#include <offpath/offpath.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

namespace offpath::mpi {

class Redoing {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  // Takes them out of there. May throw bad_alloc: then it has not got those that are left.
  void add(std::vector<client::Kept>& kept);
  // None that was posted before one of these is still at the service, and will not be kept. Asks for as many as may be under
  // way. May throw bad_alloc.
  void ask(Letters& letters);
  // An answer of operations. What cannot be one is dropped. May throw bad_alloc: then it is to be given again.
  void take(const Letter& answer);
  // Its process is lost: what is or will be for it fails. Likewise.
  void forget(int target);

  // Of those that are not carried out yet, the first; kNone.
  uint64_t first() const { return operations_.empty() ? kNone : operations_.begin()->first; }
  size_t count() const { return operations_.size(); }
  // Of one operation: what became of it. One that was never kept is OFFPATH_OK.
  offpath_status_t outcome_of(uint64_t sequence) const;
  // The first error of those posted before `through`, if any; once. may_ask: somebody may want the outcomes of single ones yet.
  offpath_status_t take_failure(uint64_t through, bool may_ask);

 private:
  // What has been sent and not answered takes memory at the other end.
  static constexpr uint64_t kMostBytes = 16 << 20;
  static constexpr uint64_t kMostCount = 1024;

  struct Operation {
    remote::Origin origin;
    bool may_be_done = false;
    bool asked = false;
    uint64_t fetched_bytes = 0;
    uint64_t bytes = 0;  // that way and back
  };
  using Operations = std::map<uint64_t, Operation>;  // by sequence

  void ask(uint64_t sequence, Operation& operation, Letters& letters);
  void end(Operations::iterator operation, offpath_status_t status);

  Operations operations_;
  std::deque<uint64_t> waiting_;  // not asked for
  uint64_t asked_count_ = 0;
  uint64_t asked_bytes_ = 0;
  std::map<uint64_t, offpath_status_t> failed_;
  uint64_t taken_ = 0;       // those before it
  std::set<uint32_t> lost_;  // targets
};

}  // namespace offpath::mpi
