// SPDX-License-Identifier: BSD-3-Clause
#include "policy/window_chooser.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace offpath::policy {
namespace {

constexpr uint64_t kOutlierTimes = 8;  // times what is known: a process that was not scheduled
constexpr uint64_t kLeastWaited = 8;   // agreements
constexpr uint64_t kMostWaited = 1024;
constexpr uint64_t kLongestTrial = 8;  // agreements
constexpr uint64_t kTrialPart = 50;    // of the time

}  // namespace

void WindowChooser::post(Onesided kind, bool atomic, Place place, uint64_t bytes, uint64_t now_ns) {
  if (batch_.operations++ == 0) {
    const auto digits = static_cast<uint32_t>(std::bit_width(bytes));
    batch_.key = digits << 8 | static_cast<uint32_t>(place) << 4 | static_cast<uint32_t>(kind);
  }
  batch_.atomic |= atomic;
  atomics_pending_ |= atomic;
  batch_.entered_ns = now_ns;
}

void WindowChooser::posted(uint64_t now_ns) {
  if (batch_.operations == 0) return;
  batch_.spent_ns += now_ns - batch_.entered_ns;
  batch_.entered_ns = now_ns;
}

void WindowChooser::flushed(uint64_t entered_ns, uint64_t left_ns, bool all) {
  if (batch_.operations != 0) batch_.spent_ns += left_ns - entered_ns;
  if (!all) return;
  if (batch_.operations != 0) end_batch();
  atomics_pending_ = false;
}

void WindowChooser::end_batch() {
  const auto way = static_cast<size_t>(path());
  Key& key = keys_[batch_.key | (batch_.atomic ? 1U << 16 : 0U)];
  // The first one on a way may open connections.
  if (key.warm[way]) {
    const uint64_t known_ns = key.ns[way];
    if (known_ns != 0) batch_.spent_ns = std::min(batch_.spent_ns, kOutlierTimes * known_ns * batch_.operations);
    key.spent_ns += batch_.spent_ns;
    key.operations += batch_.operations;
    if (batch_.atomic) atomic_ns_ += batch_.spent_ns;
  }
  key.warm[way] = true;
  batch_ = {};
}

bool WindowChooser::meets() { return changes_ != Changes::never && ++occasions_ >= due_; }

WindowChooser::Vote WindowChooser::vote(bool able, bool barred, uint64_t now_ns) {
  Vote vote;
  vote.busy = able && !atomics_pending_ ? 0 : 1;
  vote.barred = barred ? 1 : 0;
  vote.atomic_ns = static_cast<int64_t>(std::exchange(atomic_ns_, 0));
  vote.elapsed_ns = static_cast<int64_t>(now_ns - std::exchange(voted_ns_, now_ns));
  const auto way = static_cast<size_t>(path());
  for (auto& [id, key] : keys_) {
    if (key.operations == 0) continue;
    const uint64_t mean_ns = std::max<uint64_t>(1, key.spent_ns / key.operations);
    key.ns[way] = key.ns[way] == 0 || trying_ ? mean_ns : (key.ns[way] + mean_ns) / 2;
    const uint64_t there_ns = key.ns[1 - way] * key.operations;
    (there_ns == 0 ? vote.unknown_ns : vote.here_ns) += static_cast<int64_t>(key.spent_ns);
    vote.there_ns += static_cast<int64_t>(there_ns);
    key.spent_ns = 0;
    key.operations = 0;
  }
  return vote;
}

void WindowChooser::agree(const Vote& sum) {
  elapsed_ns_ += static_cast<uint64_t>(sum.elapsed_ns);
  const Path before = path();
  if (sum.busy == 0) {
    if (sum.barred != 0) {
      settle(Path::dpu, kMostWaited);
    } else if (changes_ == Changes::always) {
      home_ = other(home_);
    } else if (trying_) {
      decide_trial(sum);
    } else {
      decide(sum);
    }
  }
  if (path() != before) batch_ = {};  // puts and gets may be under way
  schedule(sum);
}

// The service must be clearly better: what it takes from computation on shared cores is not in these times.
Path WindowChooser::better(const Vote& sum) const {
  const int64_t host_ns = path() == Path::host ? sum.here_ns : sum.there_ns;
  const int64_t dpu_ns = path() == Path::host ? sum.there_ns : sum.here_ns;
  return dpu_ns < host_ns - host_ns / 8 ? Path::dpu : Path::host;
}

void WindowChooser::decide(const Vote& sum) {
  if (sum.atomic_ns == 0) return;
  ++waited_;
  const bool affordable = trials_ns_ <= elapsed_ns_ / kTrialPart;
  const bool promising = sum.there_ns != 0 && better(sum) != home_;
  if (!affordable || (waited_ <= patience_ && !promising)) return;
  trying_ = true;
  tried_ = 0;
}

void WindowChooser::decide_trial(const Vote& sum) {
  ++tried_;
  // Nothing was done that is known from both ways.
  if (sum.here_ns == 0 || sum.here_ns < sum.unknown_ns) {
    if (tried_ >= kLongestTrial) settle(home_, kMostWaited);
    return;
  }
  if (better(sum) == path()) return settle(path(), kLeastWaited);
  trials_ns_ += static_cast<uint64_t>(std::max<int64_t>(0, sum.here_ns - sum.there_ns));
  settle(home_, std::min(std::max(2 * patience_, kLeastWaited), kMostWaited));
}

void WindowChooser::settle(Path home, uint64_t patience) {
  home_ = home;
  agreed_ = true;
  trying_ = false;
  waited_ = 0;
  patience_ = patience;
}

void WindowChooser::schedule(const Vote& sum) {
  const auto elapsed_ns = static_cast<uint64_t>(sum.elapsed_ns / sum.ranks);
  const uint64_t each_ns = std::max<uint64_t>(1, elapsed_ns / std::max<uint64_t>(1, occasions_));
  const uint64_t wanted = std::min({kIntervalNs / each_ns, kMostOccasions, 2 * due_});
  due_ = changes_ == Changes::always ? 1 : std::max<uint64_t>(1, wanted);
  occasions_ = 0;
}

}  // namespace offpath::policy
