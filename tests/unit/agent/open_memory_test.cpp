// SPDX-License-Identifier: BSD-3-Clause
// An agent serves what its client has given to Offpath, while it is given, and nothing else: whatever a service says, or
// somebody in its place.
#include "agent/host_client.hpp"
#include "agent/host_memory.hpp"

#include "../session/client_segment.hpp"
#include "collective/collective.hpp"
#include "remote/record.hpp"
#include "tasks/record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace offpath::agent {
namespace {

using namespace session;
using memory::Block;
using memory::Layout;
using memory::Range;

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

constexpr uint64_t kWindow = kArenaOffset + 512, kRecord = kArenaOffset + 4096;

class Host : public ::testing::Test, public session::testing::ClientSegment {
 protected:
  void submit_record(uint32_t index, OpKind kind, const std::vector<uint8_t>& record) {
    Slot& entry = slot(index);
    entry.kind = static_cast<uint32_t>(kind);
    entry.window = kWindow;
    entry.record = kRecord + index * 4096;
    entry.record_bytes = static_cast<uint32_t>(record.size());
    entry.state = static_cast<uint32_t>(SlotState::posted);
    if (!record.empty()) write(entry.record, record);
    submit(index);
    EXPECT_TRUE(client_.take_submission());
  }
  void exchange(uint32_t index, std::vector<Block> send, std::vector<Block> recv, std::vector<Layout> layouts = {}) {
    collective::Collective wanted;
    wanted.send = std::move(send);
    wanted.recv = std::move(recv);
    wanted.layouts = std::move(layouts);
    submit_record(index, OpKind::collective, collective::encode(wanted));
  }
  // The service says that what is in that slot has ended.
  void end(uint32_t index) {
    const Word state{static_cast<uint32_t>(kSlotsOffset + index * sizeof(Slot) + offsetof(Slot, state)), 4, How::store,
                     static_cast<uint32_t>(SlotState::done)};
    WordsHead head{};
    head.count = 1;
    std::vector<uint8_t> body;
    base::RecordWriter writer(body);
    writer.write(head);
    writer.write(state);
    ASSERT_TRUE(client_.take_words(body));
  }
  bool serves(uint64_t address, uint64_t bytes) {
    std::vector<uint8_t> buffer(bytes);
    const auto outcome = client_.memory()->read(buffer.data(), address, bytes);
    if (!outcome.ok()) {
      EXPECT_EQ(outcome.status().code(), OFFPATH_ERR_PERMISSION);
    }
    EXPECT_EQ(client_.memory()->view(address, bytes) != nullptr, outcome.ok());
    return outcome.ok();
  }

  HostClient client_{base::Fd(),
                     base::Fd(),
                     getpid(),
                     std::move(SegmentView::open(other_mapping()).value()),
                     std::make_shared<memory::Aliases>(),
                     memory::make_direct()};
};

// Of a matrix's column the rest of the row is the program's.
TEST_F(Host, OfAVectorTypeOnlyItsElementsAreWritten) {
  constexpr size_t kWords = 254;
  std::vector<uint64_t> matrix(2 * kWords, 1);
  uint64_t secret[kWords] = {};
  const Layout column{8, 16, {{0, 8}}};
  exchange(0, {}, {{1, 0, address_of(matrix.data()), 8 * kWords, 1, 0}}, {column});
  const std::vector<uint64_t> words(kWords, 7);
  std::vector<Range> wanted, wrong, between;
  for (size_t i = 0; i < kWords; ++i) {
    wanted.push_back({static_cast<int64_t>(address_of(&matrix[2 * i])), 8});
    wrong.push_back({static_cast<int64_t>(address_of(&secret[i])), 8});
    between.push_back({static_cast<int64_t>(address_of(&matrix[2 * i + 1])), 8});
  }
  EXPECT_EQ(client_.memory()->scatter(wrong, words.data()).status().code(), OFFPATH_ERR_PERMISSION);
  EXPECT_EQ(client_.memory()->scatter(between, words.data()).status().code(), OFFPATH_ERR_PERMISSION);
  EXPECT_TRUE(std::all_of(std::begin(secret), std::end(secret), [](uint64_t word) { return word == 0; }));
  EXPECT_TRUE(client_.memory()->scatter(wanted, words.data()).ok());
  for (size_t i = 0; i < matrix.size(); ++i) ASSERT_EQ(matrix[i], i % 2 == 0 ? 7U : 1U) << i;
  end(0);
  EXPECT_EQ(client_.memory()->scatter(wanted, words.data()).status().code(), OFFPATH_ERR_PERMISSION) << "it is over";
}

TEST_F(Host, BuffersAreOpenWhileTheirOperationIsUnderWay) {
  std::vector<uint8_t> given(300);
  const uint64_t begin = address_of(given.data());
  EXPECT_FALSE(serves(begin, 1));
  exchange(3, {{1, 0, begin, 100, 0, 0}}, {{1, 0, begin + 100, 100, 0, 0}});
  exchange(4, {{1, 0, begin + 50, 100, 0, 0}}, {});
  EXPECT_TRUE(serves(begin, 200)) << "both together";
  EXPECT_FALSE(serves(begin, 201));
  EXPECT_FALSE(serves(begin - 1, 2));
  EXPECT_EQ(client_.memory()->view(begin, SIZE_MAX), nullptr);
  end(3);
  EXPECT_TRUE(serves(begin + 50, 100));
  EXPECT_FALSE(serves(begin + 49, 2));
  end(4);
  EXPECT_FALSE(serves(begin + 50, 1));
}

TEST_F(Host, WindowsAreOpenUntilTheyAreClosed) {
  std::vector<uint8_t> given(300);
  auto& record = at<WindowRecord>(kWindow);
  record.base = address_of(given.data());
  record.bytes = 100;
  submit_record(0, OpKind::window_open, {});
  end(0);
  slot(1).address = record.base + 200;
  slot(1).bytes = 50;
  submit_record(1, OpKind::window_attach, {});
  end(1);
  EXPECT_TRUE(serves(record.base, 100) && serves(record.base + 200, 50));
  EXPECT_FALSE(serves(record.base, 101) || serves(record.base + 200, 51) || serves(record.base + 150, 1));
  slot(2).address = record.base + 200;
  submit_record(2, OpKind::window_detach, {});
  EXPECT_TRUE(serves(record.base + 200, 50)) << "what was begun before may still work there";
  end(2);
  EXPECT_FALSE(serves(record.base + 200, 1));
  submit_record(3, OpKind::window_close, {});
  EXPECT_TRUE(serves(record.base, 100));
  end(3);
  EXPECT_FALSE(serves(record.base, 1));
}

TEST_F(Host, OneSidedOperationsAndTasksOpenTheirs) {
  std::vector<uint8_t> given(300);
  const uint64_t begin = address_of(given.data());
  remote::Origin origin;
  origin.send = {0, 0, begin, 10, 0, 0};
  origin.result = {0, 0, begin + 100, 8, 0, 0};
  std::vector<uint8_t> record;
  remote::encode(origin, record);
  submit_record(0, OpKind::remote, record);
  EXPECT_TRUE(serves(begin, 10) && serves(begin + 100, 8));
  EXPECT_FALSE(serves(begin, 11));
  tasks::Task task;
  task.ranges = {{begin + 200, 30, OFFPATH_TASK_IN, 0}};
  uint64_t after = 0;
  submit_record(1, OpKind::task, tasks::encode(task, &after));
  EXPECT_TRUE(serves(begin + 200, 30));
  EXPECT_FALSE(serves(begin + 200, 31));
  end(0), end(1);
  EXPECT_FALSE(serves(begin, 1) || serves(begin + 200, 1));
}

// Any layout, byte by byte.
TEST(Footprints, HaveTheBytesOfTheirLayoutAndNoOthers) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    Layout layout;
    for (uint32_t ranges = random() % 5 + 1; ranges > 0; --ranges) {
      layout.ranges.push_back({static_cast<int64_t>(random() % 60) - 20, random() % 9});
      layout.size_bytes += layout.ranges.back().bytes;
    }
    layout.extent_bytes = static_cast<int64_t>(random() % 120) - 40;
    if (layout.size_bytes == 0) continue;
    const uint64_t count = random() % 7 + 1;
    constexpr int64_t kBase = 1000;
    std::vector<bool> has(3000);
    for (int64_t element = 0; element < static_cast<int64_t>(count); ++element) {
      for (const Range& range : layout.ranges) {
        const int64_t from = kBase + element * layout.extent_bytes + range.offset;
        for (uint64_t i = 0; i < range.bytes; ++i) has[static_cast<size_t>(from) + i] = true;
      }
    }
    const auto footprint = Footprint::of({0, 0, kBase, count * layout.size_bytes, 1, 0}, {layout});
    ASSERT_TRUE(footprint);
    for (uint64_t byte = 0; byte < has.size(); ++byte) {
      const uint64_t covered = footprint->covered(byte);
      ASSERT_EQ(covered > 0, has[byte]) << "byte " << byte << " round " << round;
      for (uint64_t i = 0; i < covered; ++i) ASSERT_TRUE(has[byte + i]);
    }
  }
}

}  // namespace
}  // namespace offpath::agent
