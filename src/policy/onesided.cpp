// SPDX-License-Identifier: BSD-3-Clause
#include "policy/onesided.hpp"

#include <bit>

namespace offpath::policy {
namespace {

constexpr uint64_t kTooLong = 8;       // times what the way in use takes
constexpr uint64_t kTooLongCold = 64;  // for the first batch, which may open connections
constexpr uint64_t kTryingPart = 50;   // of the time since the first operation
constexpr uint64_t kMostTried = 16;    // batches of a trial

uint64_t excess(uint64_t ns, uint64_t usual_ns) { return ns > usual_ns ? ns - usual_ns : 0; }

}  // namespace

void OnesidedChooser::Estimate::learn(uint64_t sample_ns) {
  if (ns == 0) {
    collect(sample_ns);
    return;
  }
  // One long one, such as a process that was not scheduled, says little.
  const auto clipped = static_cast<int64_t>(std::min(sample_ns, 4 * ns));
  ns =
      std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<int64_t>(ns) + (clipped - static_cast<int64_t>(ns)) / 8));
}

bool OnesidedChooser::Estimate::collect(uint64_t sample_ns) {
  if (!warm) {
    warm = true;
    return false;
  }
  samples[count++] = sample_ns;
  if (count < kSamples) return false;
  std::sort(samples.begin(), samples.end());
  settle(samples[kSamples / 2]);
  return true;
}

void OnesidedChooser::Estimate::settle(uint64_t known_ns) {
  ns = std::max<uint64_t>(1, known_ns);
  count = 0;
}

OnesidedChooser::Key& OnesidedChooser::key_of(Onesided kind, Place place, uint64_t bytes) {
  const auto digits = static_cast<uint32_t>(std::bit_width(bytes));
  return keys_[digits << 8 | static_cast<uint32_t>(place) << 4 | static_cast<uint32_t>(kind)];
}

OnesidedChooser::Choice OnesidedChooser::choose(Onesided kind, Place place, uint64_t bytes, uint64_t now_ns) {
  if (bytes >= kServedBytes) {
    add_other();
    return {Path::dpu, Why::policy};
  }
  if (begin_ns_ == 0) begin_ns_ = now_ns;
  Choice choice = batch_.choice;
  if (batch_.operations == 0) {
    Key& key = key_of(kind, place, bytes);
    choice = begin(key, now_ns);
    batch_ = {.key = &key, .choice = choice, .place = place};
  } else {
    batch_.gap_ns = std::max(batch_.gap_ns, now_ns - batch_.left_ns);
    if (place != batch_.place) {
      const Key& key = key_of(kind, place, bytes);
      batch_.mixed = true;
      choice = {key.is_overlapped() ? Path::dpu : key.home, Why::adapted};
    }
  }
  ++batch_.operations;
  batch_.entered_ns = now_ns;
  batch_.left_ns = now_ns;
  return choice;
}

void OnesidedChooser::posted(uint64_t now_ns) {
  if (batch_.operations == 0) return;
  batch_.spent_ns += now_ns - batch_.entered_ns;
  batch_.entered_ns = now_ns;
  batch_.left_ns = now_ns;
}

void OnesidedChooser::flushed(uint64_t entered_ns, uint64_t left_ns, bool all) {
  if (batch_.operations != 0) {
    batch_.gap_ns = std::max(batch_.gap_ns, entered_ns - batch_.left_ns);
    batch_.spent_ns += left_ns - entered_ns;
    batch_.left_ns = left_ns;
    if (all) end();
  }
  if (all) others_ = false;
}

OnesidedChooser::Choice OnesidedChooser::begin(Key& key, uint64_t now_ns) {
  if (key.is_overlapped()) return {Path::dpu, Why::adapted};
  if (key.of(Path::dpu).ns == 0) return {Path::dpu, Why::policy};
  // What cannot be measured is no reason to try.
  if (others_) return {key.home, Why::adapted};
  const bool affordable = tried_ns_ <= (now_ns - begin_ns_) / kTryingPart;
  if (!key.trying && affordable && key.waited >= key.due) {
    key.trying = true;
    key.tried = 0;
    key.of(key.other()).count = 0;
  }
  // Batches that turn out to be none to measure must not keep it on for long.
  if (key.trying && ++key.tried > kMostTried) end_trial(key);
  return key.trying ? Choice{key.other(), Why::exploring} : Choice{key.home, Why::adapted};
}

void OnesidedChooser::end() {
  Key& key = *batch_.key;
  const bool at_once = batch_.gap_ns <= kAtOnceNs;
  if (!at_once) {
    key.overlapped = std::min<uint8_t>(kMostOverlapped, key.overlapped + 1);
  } else if (key.overlapped > 0) {
    --key.overlapped;
  }
  if (at_once && !others_ && !batch_.mixed) measure(key, batch_.spent_ns / batch_.operations);
  batch_ = {};
}

void OnesidedChooser::measure(Key& key, uint64_t sample_ns) {
  if (batch_.choice.path == key.home) {
    ++key.waited;
    key.of(key.home).learn(sample_ns);
    // A batch that began the other way while this one is tried, as of overlapped ones, decides nothing.
    if (!key.trying) decide(key);
    return;
  }
  if (!key.trying) return;  // the service, for a key at home on the host whose batches were overlapped
  Estimate& other = key.of(key.other());
  const bool first = other.ns == 0;
  const uint64_t usual_ns = key.of(key.home).ns;
  tried_ns_ += excess(sample_ns, usual_ns) * batch_.operations;
  const bool too_long = sample_ns / (other.warm ? kTooLong : kTooLongCold) > usual_ns;
  if (too_long) {
    other.settle(sample_ns);
    other.warm = true;
  } else if (!other.collect(sample_ns)) {
    return;
  }
  if (!first) key.patience = std::min(2 * key.patience, kMostPatience);
  end_trial(key);
  decide(key);
}

void OnesidedChooser::end_trial(Key& key) {
  key.trying = false;
  key.waited = 0;
  key.due = key.patience;
}

void OnesidedChooser::decide(Key& key) {
  const uint64_t here_ns = key.of(key.home).ns;
  const uint64_t there_ns = key.of(key.other()).ns;
  if (there_ns == 0 || here_ns == 0 || there_ns >= here_ns - here_ns / 8) return;
  key.home = key.other();
  key.patience = kLeastPatience;
  key.due = kLeastPatience;
  key.waited = 0;
}

}  // namespace offpath::policy
