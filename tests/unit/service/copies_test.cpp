// SPDX-License-Identifier: BSD-3-Clause
// Copies between clients' memory and a board, through ports that answer at once and ports that answer later, in any order.
#include "service/tasks/copies.hpp"

#include "../engine/late_port.hpp"
#include "../engine/walls.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>

namespace offpath::testing {
namespace {

using service::Copies;

constexpr size_t kLong = Copies::kRoundBytes + Copies::kUnderWayBytes + 12345;
uint64_t at(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

class Copying : public ::testing::TestWithParam<bool> {  // does the port answer later?
 protected:
  struct Over {
    offpath_status_t status;
    uint32_t range;
  };
  Copying() : late_(std::make_shared<LatePort>(std::make_shared<Walls>(), 7)) {
    port_ = std::make_shared<Walls>();
    if (GetParam()) port_ = late_;
  }
  uint64_t begin(Copies::Way way, std::vector<Copies::Part> parts, std::optional<Over>& over) {
    return copies_.begin(port_, way, std::move(parts), [&over](const base::Status& status, uint32_t range) {
      EXPECT_FALSE(over);
      over = Over{status.code(), range};
    });
  }
  void settle() {
    while (copies_.progress() || late_->step()) {
    }
    EXPECT_FALSE(copies_.pending());
  }
  std::shared_ptr<LatePort> late_;
  std::shared_ptr<memory::Port> port_;
  int wakes_ = 0;
  Copies copies_{[this] { ++wakes_; }};
};

TEST_P(Copying, AnyLengthInBothDirectionsAndSeveralAtATime) {
  std::vector<uint8_t> there(kLong), here(kLong), back(kLong);
  std::iota(there.begin(), there.end(), uint8_t{3});
  std::optional<Over> long_one, short_one, empty_one;
  begin(Copies::Way::in, {{at(there.data()), kLong, here.data(), 0}}, long_one);
  EXPECT_TRUE(copies_.pending());
  begin(Copies::Way::in, {}, empty_one);
  uint8_t few[3] = {};
  begin(Copies::Way::in,
        {{at(there.data() + 7), 1, few, 0}, {at(there.data()), 0, few, 1}, {at(there.data() + 9), 2, few + 1, 2}},
        short_one);
  EXPECT_FALSE(long_one);
  settle();
  ASSERT_TRUE(long_one && short_one && empty_one);
  EXPECT_EQ(long_one->status, OFFPATH_OK);
  EXPECT_EQ(here, there);
  EXPECT_EQ(few[0], 10);
  EXPECT_EQ(few[1], 12);
  EXPECT_EQ(few[2], 13);
  EXPECT_EQ(wakes_ > 0, GetParam());
  std::optional<Over> out;
  begin(Copies::Way::out,
        {{at(back.data()), kLong / 2, here.data(), 0},
         {at(back.data() + kLong / 2), kLong - kLong / 2, here.data() + kLong / 2, 1}},
        out);
  settle();
  EXPECT_EQ(out->status, OFFPATH_OK);
  EXPECT_EQ(back, there);
}

// Nothing of it is touched after that.
TEST_P(Copying, FailsWithTheRangeThatIsNone) {
  std::vector<uint8_t> there(kLong), here(kLong);
  std::optional<Over> over;
  begin(
      Copies::Way::in,
      {{at(there.data()), kLong, here.data(), 3}, {100, 50, here.data(), 5}, {at(there.data()), kLong, here.data(), 6}},
      over);
  settle();
  ASSERT_TRUE(over);
  EXPECT_EQ(over->status, OFFPATH_ERR_MEMORY_FAULT);
  EXPECT_EQ(over->range, 5U);
}

TEST_P(Copying, StoppedIsOverWhenNothingIsUnderWay) {
  std::vector<uint8_t> there(kLong, 1), here(kLong);
  std::optional<Over> over, other;
  const uint64_t number = begin(Copies::Way::in, {{at(there.data()), kLong, here.data(), 0}}, over);
  begin(Copies::Way::in, {{at(there.data()), 5, here.data(), 0}}, other);
  copies_.progress();
  EXPECT_FALSE(over);
  copies_.stop(number);
  EXPECT_EQ(copies_.progress() && over.has_value(), !GetParam()) << "a port that answers later still has the buffer";
  settle();
  ASSERT_TRUE(over && other);
  EXPECT_EQ(here.back(), 0) << "no more of it has begun";
}

INSTANTIATE_TEST_SUITE_P(Ports, Copying, ::testing::Bool());

}  // namespace
}  // namespace offpath::testing
