// SPDX-License-Identifier: BSD-3-Clause
// Which way the puts and gets of one origin on one window go: natively (host) or by the service (dpu). Found out while the
// program runs (docs/design/0018-windows-by-operation.md). Pure: no MPI, no clock.
//
// Operations between two calls that complete are a batch; it goes the way of its first operation. What lies in another
// place than that goes its own way, and then the batch is not measured.
//
// Threads: one at a time.
#pragma once

#include "policy/adaptation.hpp"
#include "policy/policy.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace offpath::policy {

enum class Onesided : uint8_t { put, get };
// Of the target: the origin itself, on its node, on another.
enum class Place : uint8_t { own, near, far };

class OnesidedChooser {
 public:
  // From here on the service is better whatever follows.
  static constexpr uint64_t kServedBytes = 128 << 10;
  // The longest time between calls of a batch in which nothing is hidden.
  static constexpr uint64_t kAtOnceNs = 10'000;
  static constexpr uint64_t kLeastPatience = 64;
  static constexpr uint64_t kMostPatience = 8192;

  struct Choice {
    Path path;
    Why why;
  };

  // An operation is being posted; times never decrease. Its call ends with posted().
  // May throw bad_alloc.
  Choice choose(Onesided kind, Place place, uint64_t bytes, uint64_t now_ns);
  void posted(uint64_t now_ns);
  // Something without a choice was posted.
  void add_other() { others_ = true; }
  // Nothing was posted since all was done: a call that completes need not be told.
  bool idle() const { return batch_.operations == 0 && !others_; }
  // A call that completes. `all`: nothing is under way any more.
  void flushed(uint64_t entered_ns, uint64_t left_ns, bool all);

 private:
  static constexpr size_t kSamples = 3;
  static constexpr uint8_t kOverlapped = 2;  // so many of the last few batches
  static constexpr uint8_t kMostOverlapped = 3;

  // What an operation takes on one way.
  struct Estimate {
    uint64_t ns = 0;  // 0: unknown
    std::array<uint64_t, kSamples> samples{};
    size_t count = 0;  // of samples
    bool warm = false;

    void learn(uint64_t sample_ns);    // of the way in use
    bool collect(uint64_t sample_ns);  // of one that is tried; true: that was enough
    void settle(uint64_t known_ns);
  };

  // What was found out about batches of one kind: those that are overlapped, or those that are not.
  struct Found {
    std::array<Estimate, 2> estimates;  // by path
    Path home = Path::dpu;
    bool trying = false;  // the other way
    uint64_t tried = 0;   // batches of this trial
    uint64_t waited = 0;  // batches since the last trial
    uint64_t due = 0;     // so many before the next
    uint64_t patience = kLeastPatience;

    Estimate& of(Path path) { return estimates[static_cast<size_t>(path)]; }
    Path other() const { return home == Path::dpu ? Path::host : Path::dpu; }
  };

  struct Key {
    std::array<Found, 2> found;  // by whether they are overlapped
    uint8_t overlapped = 0;      // batches lately

    bool is_overlapped() const { return overlapped >= kOverlapped; }
    // About what the next batch will be, as far as one can tell.
    Found& next() { return found[is_overlapped() ? 1 : 0]; }
  };

  struct Batch {
    Key* key = nullptr;
    Found* found = nullptr;  // of the key
    Choice choice{Path::dpu, Why::policy};
    Place place = Place::far;
    bool mixed = false;  // of several places
    uint64_t operations = 0;
    uint64_t spent_ns = 0;  // in its calls
    uint64_t gap_ns = 0;    // the longest between them
    uint64_t entered_ns = 0;
    uint64_t left_ns = 0;
  };

  Key& key_of(Onesided kind, Place place, uint64_t bytes);
  Choice begin(Found& found, uint64_t now_ns);
  void end();
  void measure(Found& found, uint64_t sample_ns);
  static void end_trial(Found& found);
  static void decide(Found& found);

  std::map<uint32_t, Key> keys_;
  Batch batch_;
  bool others_ = false;
  uint64_t begin_ns_ = 0;  // of the first operation
  uint64_t tried_ns_ = 0;  // what trying has cost
};

}  // namespace offpath::policy
