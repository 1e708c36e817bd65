// SPDX-License-Identifier: BSD-3-Clause
#include "policy/onesided.hpp"

#include <algorithm>
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
    Found& found = key.next();
    choice = begin(found, now_ns);
    batch_ = {.key = &key, .found = &found, .choice = choice, .place = place};
  } else {
    batch_.gap_ns = std::max(batch_.gap_ns, now_ns - batch_.left_ns);
    if (place != batch_.place) {
      batch_.mixed = true;
      choice = {key_of(kind, place, bytes).next().home, Why::adapted};
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

OnesidedChooser::Choice OnesidedChooser::begin(Found& found, uint64_t now_ns) {
  if (found.of(Path::dpu).ns == 0) return {Path::dpu, Why::policy};
  // What cannot be measured is no reason to try.
  if (others_) return {found.home, Why::adapted};
  const bool affordable = tried_ns_ <= (now_ns - begin_ns_) / kTryingPart;
  if (!found.trying && affordable && found.waited >= found.due) {
    found.trying = true;
    found.tried = 0;
    found.of(found.other()).count = 0;
  }
  // Batches that turn out to be none to measure must not keep it on for long.
  if (found.trying && ++found.tried > kMostTried) end_trial(found);
  return found.trying ? Choice{found.other(), Why::exploring} : Choice{found.home, Why::adapted};
}

void OnesidedChooser::end() {
  Key& key = *batch_.key;
  const bool overlapped = batch_.gap_ns > kAtOnceNs;
  const bool expected = batch_.found == &key.found[overlapped ? 1 : 0];
  if (overlapped) {
    key.overlapped = std::min<uint8_t>(kMostOverlapped, key.overlapped + 1);
  } else if (key.overlapped > 0) {
    --key.overlapped;
  }
  if (expected && !others_ && !batch_.mixed) measure(*batch_.found, batch_.spent_ns / batch_.operations);
  batch_ = {};
}

void OnesidedChooser::measure(Found& found, uint64_t sample_ns) {
  if (batch_.choice.path == found.home) {
    ++found.waited;
    found.of(found.home).learn(sample_ns);
    if (!found.trying) decide(found);  // else: a batch of several places has gone home
    return;
  }
  Estimate& other = found.of(found.other());
  const bool first = other.ns == 0;
  const uint64_t usual_ns = found.of(found.home).ns;
  tried_ns_ += excess(sample_ns, usual_ns) * batch_.operations;
  const bool too_long = sample_ns / (other.warm ? kTooLong : kTooLongCold) > usual_ns;
  if (too_long) {
    other.settle(sample_ns);
    other.warm = true;
  } else if (!other.collect(sample_ns)) {
    return;
  }
  if (!first) found.patience = std::min(2 * found.patience, kMostPatience);
  end_trial(found);
  decide(found);
}

void OnesidedChooser::end_trial(Found& found) {
  found.trying = false;
  found.waited = 0;
  found.due = found.patience;
}

void OnesidedChooser::decide(Found& found) {
  const uint64_t here_ns = found.of(found.home).ns;
  const uint64_t there_ns = found.of(found.other()).ns;
  if (there_ns == 0 || here_ns == 0 || there_ns >= here_ns - here_ns / 8) return;
  found.home = found.other();
  found.patience = kLeastPatience;
  found.due = kLeastPatience;
  found.waited = 0;
}

}  // namespace offpath::policy
