// SPDX-License-Identifier: BSD-3-Clause
// Whether all of a window goes natively (host), or by operation with its accumulates at the service (dpu). Accumulates
// are atomic only if all of them go one way, so the ranks agree, at calls that all of them wait in
// (docs/design/0023-atomics-of-windows.md). Pure: no MPI, no clock.
//
// Each rank measures its batches: what lies between two calls that complete. At an agreement each gives a vote, and from
// the sum of the votes all take the same decision.
//
// Threads: one at a time.
#pragma once

#include "policy/onesided.hpp"
#include "policy/policy.hpp"

#include <array>
#include <cstdint>
#include <map>

namespace offpath::policy {

class WindowChooser {
 public:
  // What is added up over the ranks.
  struct Vote {
    int64_t ranks = 1;
    int64_t busy = 0;       // cannot change now
    int64_t barred = 0;     // must be at the service
    int64_t atomic_ns = 0;  // of the batches with something atomic
    // Of the batches since the last agreement: what they took, and would have taken on the other way; and what those took of
    // which that is not known.
    int64_t here_ns = 0;
    int64_t there_ns = 0;
    int64_t unknown_ns = 0;
    int64_t elapsed_ns = 0;
  };
  static constexpr size_t kNumbers = sizeof(Vote) / sizeof(int64_t);
  // Agreements are so far apart, if there is an occasion.
  static constexpr uint64_t kIntervalNs = 2'000'000;
  static constexpr uint64_t kMostOccasions = 64;

  // How the way changes: as measured; never; at each agreement (for tests).
  enum class Changes : uint8_t { measured, never, always };
  WindowChooser(Path first, Changes changes, uint64_t now_ns) : changes_(changes), home_(first), voted_ns_(now_ns) {}

  Path path() const { return trying_ ? other(home_) : home_; }
  Why why() const { return trying_ ? Why::exploring : agreed_ ? Why::adapted : Why::policy; }

  // An operation is being posted; its call ends with posted(). Times never decrease. May throw bad_alloc.
  void post(Onesided kind, bool atomic, Place place, uint64_t bytes, uint64_t now_ns);
  void posted(uint64_t now_ns);
  // A call that completes. `all`: nothing is under way any more.
  void flushed(uint64_t entered_ns, uint64_t left_ns, bool all);
  // Something atomic was posted and may be under way.
  bool atomics_pending() const { return atomics_pending_; }
  // Of the batch only: nothing was posted since all was done.
  bool idle() const { return batch_.operations == 0; }

  // A call in which all ranks wait for each other: whether they agree in it. Alike on all ranks.
  bool meets();
  // After it said so; once each.
  Vote vote(bool able, bool barred, uint64_t now_ns);
  void agree(const Vote& sum);

 private:
  struct Key {
    std::array<uint64_t, 2> ns{};  // an operation takes, by path; 0: unknown
    std::array<bool, 2> warm{};
    uint64_t spent_ns = 0;  // since the last vote
    uint64_t operations = 0;
  };
  struct Batch {
    uint32_t key = 0;
    bool atomic = false;
    uint64_t operations = 0;
    uint64_t spent_ns = 0;  // in its calls
    uint64_t entered_ns = 0;
  };

  static Path other(Path path) { return path == Path::dpu ? Path::host : Path::dpu; }
  void end_batch();
  Path better(const Vote& sum) const;
  void decide(const Vote& sum);
  void decide_trial(const Vote& sum);
  void settle(Path home, uint64_t patience);
  void schedule(const Vote& sum);

  const Changes changes_;
  // Alike on all ranks.
  Path home_;
  bool trying_ = false;  // the other way
  bool agreed_ = false;  // on something, once
  uint64_t tried_ = 0;   // agreements of this trial
  uint64_t waited_ = 0;  // agreements since the last one
  uint64_t patience_ = 0;
  uint64_t trials_ns_ = 0;   // what trials have cost, and
  uint64_t elapsed_ns_ = 0;  // the time in all: of all ranks
  uint64_t occasions_ = 0;   // since the last agreement
  uint64_t due_ = 1;         // at that one
  // This rank's.
  std::map<uint32_t, Key> keys_;
  Batch batch_;
  bool atomics_pending_ = false;
  uint64_t atomic_ns_ = 0;  // since the last vote
  uint64_t voted_ns_;
};

}  // namespace offpath::policy
