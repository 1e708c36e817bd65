// SPDX-License-Identifier: BSD-3-Clause
// A target without an engine, with a window of its own memory.
#pragma once

#include "../remote/body.hpp"
#include "ops/onesided/target.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace offpath::ops::onesided {

using graph::Answer;
using graph::RequestId;
using remote::testing::Body;

inline constexpr uint64_t kTeam = 7, kWindow = 3;
inline constexpr graph::ClientId kClient = 5;
inline constexpr size_t kBytes = 256;

class OnesidedTarget : public ::testing::Test {
 protected:
  OnesidedTarget() {
    for (size_t i = 0; i < sizeof(space_); ++i) space_[i] = static_cast<uint8_t>(i * 7 + 1);
    memcpy(before_, space_, sizeof(space_));
  }
  uint64_t base() const { return reinterpret_cast<uint64_t>(space_ + kBytes); }
  uint8_t* window() { return space_ + kBytes; }
  void open() { ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, base(), kBytes, false).ok()); }
  bool untouched() const { return memcmp(space_, before_, sizeof(space_)) == 0; }

  Answer ask(const Body& wanted, uint32_t from = 0) {
    return target_.on_request(kClient, kTeam, from, ++last_, memory_, encode(wanted));
  }
  static Body put(uint64_t offset, std::vector<uint8_t> data) {
    Body out;
    out.window = kWindow;
    out.offset = offset;
    out.bytes = data.size();
    out.data = std::move(data);
    return out;
  }
  static Body sum(uint64_t offset, uint64_t bytes, uint64_t value = 1) {
    Body out;
    out.window = kWindow;
    out.kind = OFFPATH_ACCUMULATE;
    out.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
    out.offset = offset;
    out.bytes = bytes;
    if (is_short(out)) {
      out.data.resize(bytes);
      for (uint64_t at = 0; at < bytes; at += 8) memcpy(&out.data[at], &value, 8);
    }
    return out;
  }
  static Body of_kind(offpath_remote_kind_t kind, uint64_t window = kWindow) {
    Body out;
    out.window = window;
    out.kind = kind;
    return out;
  }
  offpath_status_t answered(RequestId request) {
    return answers_.contains(request) ? answers_.at(request).status.code() : OFFPATH_IN_PROGRESS;
  }
  uint64_t value_at(uint64_t offset) {
    uint64_t out;
    memcpy(&out, window() + offset, 8);
    return out;
  }

  uint8_t space_[3 * kBytes], before_[3 * kBytes];
  std::shared_ptr<memory::Port> memory_ = memory::make_direct();
  std::map<RequestId, Answer> answers_;
  RequestId last_ = 0;
  Target target_{[this](RequestId request, Answer answer) {
    EXPECT_TRUE(answers_.emplace(request, std::move(answer)).second) << "answered twice";
  }};
};

}  // namespace offpath::ops::onesided
