// SPDX-License-Identifier: BSD-3-Clause
// Entries of a board: what an executor finds there, who has which one, and results that nobody has asked for.
#include "service/tasks/entries.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <list>

namespace offpath::service {
namespace {

using tasks::Reach;
using tasks::State;

class OnBoard : public ::testing::Test {
 protected:
  Job& add(size_t argument_bytes = 0, std::span<const Reach> reaches = {}) {
    Job& job = jobs_.emplace_back();
    job.task.argument.assign(argument_bytes, 'a');
    EXPECT_TRUE(entries_.take(job, reaches));
    return job;
  }
  std::vector<Job*> done() {
    std::vector<Job*> out;
    entries_.each_done([&](Job& job) { out.push_back(&job); });
    return out;
  }

  Room room_{std::move(tasks::Board::create(1 << 20, 2).value())};
  Entries entries_{room_, 2};
  const uint64_t empty_ = room_.used();
  const tasks::Board& board_ = room_.board();
  std::list<Job> jobs_;
};

TEST_F(OnBoard, AnExecutorFindsWhatATaskIs) {
  for (const size_t argument_bytes : {size_t{0}, size_t{100}, size_t{Entries::kPlateBytes}}) {
    const Reach reaches[2] = {{7, 4096, 100, OFFPATH_TASK_IN, 0}, {0, 64, 8, OFFPATH_TASK_OUT, 0}};
    Job& job = add(argument_bytes, reaches);
    EXPECT_FALSE(board_.take(0)) << "it may not begin yet";
    ASSERT_TRUE(entries_.post(job));
    const auto taken = board_.take(0);
    ASSERT_EQ(taken, job.entry);
    EXPECT_EQ(entries_.state_of(job), State::running);
    const tasks::Entry& entry = board_.entry(*taken);
    ASSERT_EQ(entry.argument_bytes, argument_bytes);
    EXPECT_EQ(std::string(reinterpret_cast<char*>(board_.room(entry.argument, argument_bytes)), argument_bytes),
              std::string(argument_bytes, 'a'));
    ASSERT_EQ(entry.ranges_count, 2U);
    EXPECT_EQ(memcmp(board_.room(entry.ranges, sizeof(reaches)), reaches, sizeof(reaches)), 0);
    entries_.release(job);
    EXPECT_EQ(room_.used(), empty_);
    EXPECT_EQ(entries_.in_use(), 0U);
  }
}

TEST(Entries, WithoutRoomForThemAreNone) {
  Room room(std::move(tasks::Board::create(Entries::kPlateBytes, 2).value()));
  EXPECT_FALSE(Entries(room, 2).fit());
}

TEST_F(OnBoard, ThereAreEightForEachExecutor) {
  for (uint32_t count = 0; count < 16; ++count) {
    ASSERT_TRUE(entries_.any_free());
    EXPECT_EQ(add().entry, count);
  }
  EXPECT_FALSE(entries_.any_free());
  entries_.release(jobs_.front());
  EXPECT_TRUE(entries_.any_free());
}

TEST_F(OnBoard, WithoutRoomForALongArgumentItHasNone) {
  Job job;
  job.task.argument.resize(1 << 20);
  EXPECT_FALSE(entries_.take(job, {}));
  EXPECT_EQ(entries_.in_use(), 0U);
}

TEST_F(OnBoard, ResultsAreOfThoseThatWerePosted) {
  Job &first = add(), &second = add(), &third = add();
  entries_.post(first);
  entries_.post(second);
  EXPECT_EQ(entries_.posted(), (std::vector<Job*>{&first, &second}));
  EXPECT_TRUE(done().empty());
  ASSERT_TRUE(board_.take(0) && board_.finish(first.entry, 0));
  board_.header().finished |= uint64_t{1} << third.entry | uint64_t{1} << second.entry | uint64_t{1} << 63;  // lies
  EXPECT_EQ(done(), std::vector<Job*>{&first});
  EXPECT_TRUE(done().empty());
}

}  // namespace
}  // namespace offpath::service
