// SPDX-License-Identifier: BSD-3-Clause
// What processes tell each other about their nodes: all know what each would have said in full, and little is said.
#include "attach/node_records.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace offpath::attach {
namespace {

using base::CoreSet;

// What all processes have given, by exchange and process.
using Given = std::vector<std::vector<std::vector<std::byte>>>;

// One process's view of a job whose processes take part one after the other: an exchange that not all have given something to
// fails, and is there when the process asks again.
class InTurn final : public Exchange {
 public:
  InTurn(int rank, int size, Given& given) : Exchange(rank, size, "not yet"), given_(given) {}

 private:
  bool broadcast_bytes(void*, size_t) const override { return false; }
  bool gather_bytes(const void* record, size_t bytes, void* all) const override { return give(record, bytes, all); }
  bool gather_parts(const void* own, const Parts& parts, void* all) const override {
    return give(own, static_cast<size_t>(parts.bytes[static_cast<size_t>(rank())]), all);
  }
  bool give(const void* own, size_t bytes, void* all) const {
    if (given_.size() <= next_) given_.resize(next_ + 1);
    auto& exchange = given_[next_++];
    if (exchange.size() == static_cast<size_t>(rank())) {
      const auto* const from = static_cast<const std::byte*>(own);
      exchange.emplace_back(from, from + bytes);
    }
    if (exchange.size() < static_cast<size_t>(size())) return false;
    auto* to = static_cast<std::byte*>(all);
    for (const auto& part : exchange) to = std::copy(part.begin(), part.end(), to);
    return true;
  }

  Given& given_;
  mutable size_t next_ = 0;
};

size_t given_bytes(const Given& given) {
  size_t bytes = 0;
  for (const auto& exchange : given) {
    for (const auto& part : exchange) bytes += part.size();
  }
  return bytes;
}

NodeRecord record(uint64_t key, const CoreSet& bound, const CoreSet& allowed) {
  NodeRecord made{};
  made.key = key;
  snprintf(made.host.data(), made.host.size(), "node%d", static_cast<int>(key));
  made.bound = bound;
  made.allowed = allowed | bound;
  return made;
}

CoreSet cores(size_t first, size_t count) {
  CoreSet made;
  for (size_t core = first; core < first + count; ++core) made.set(core);
  return made;
}

void expect_same(const NodeRecords& found, const std::vector<NodeRecord>& all) {
  ASSERT_EQ(found.size(), all.size());
  for (size_t process = 0; process < all.size(); ++process) {
    const NodeRecord each = found[process];
    EXPECT_EQ(each.key, all[process].key);
    EXPECT_EQ(found.key_of(process), all[process].key);
    EXPECT_STREQ(each.host.data(), all[process].host.data());
    EXPECT_EQ(each.bound, all[process].bound) << process;
    EXPECT_EQ(each.allowed, all[process].allowed) << process;
    EXPECT_EQ(each.has_dpu, all[process].has_dpu);
  }
}

// Bytes that all have given.
size_t expect_all_know(const std::vector<NodeRecord>& all) {
  Given given;
  const auto size = static_cast<int>(all.size());
  for (int round = 0; round < 2; ++round) {
    for (int rank = 0; rank < size; ++rank) {
      NodeRecords found;
      NodeRecords::gather(InTurn(rank, size, given), all[static_cast<size_t>(rank)], &found);
    }
  }
  for (int rank = 0; rank < size; ++rank) {
    NodeRecords found;
    EXPECT_TRUE(NodeRecords::gather(InTurn(rank, size, given), all[static_cast<size_t>(rank)], &found));
    expect_same(found, all);
  }
  return given_bytes(given);
}

constexpr size_t kBriefBytes = 16;

TEST(NodeRecords, OneOfEachNodeTellsItInFull) {
  // With a core each, with one and its other thread, on part of the node, and not bound at all.
  const auto own_core = [](size_t i) { return cores(i, 1); };
  const auto own_threads = [](size_t i) { return cores(i, 1) | cores(i + 64, 1); };
  const auto own_part = [](size_t i) { return cores(i / 8 * 8, 8) | cores(i / 8 * 8 + 64, 8); };
  const auto unbound = [](size_t) { return cores(0, 128); };
  for (const std::function<CoreSet(size_t)>& bound :
       std::vector<std::function<CoreSet(size_t)>>{own_core, own_threads, own_part, unbound}) {
    std::vector<NodeRecord> all;
    for (size_t process = 0; process < 256; ++process)
      all.push_back(record(process / 64, bound(process % 64), cores(0, 128)));
    EXPECT_EQ(expect_all_know(all), 256 * kBriefBytes + 4 * sizeof(NodeRecord));
  }
}

// The scheduler has given the job the cores that its processes are bound to, and no others.
TEST(NodeRecords, WhatIsAllowedMayFollowFromWhatIsBound) {
  std::vector<NodeRecord> all;
  for (size_t process = 0; process < 128; ++process) all.push_back(record(process / 64, cores(process % 64, 1), {}));
  EXPECT_EQ(expect_all_know(all), 128 * kBriefBytes + 2 * sizeof(NodeRecord));
}

TEST(NodeRecords, CoresWithoutAWordAreToldOnce) {
  CoreSet odd;
  for (const size_t core : {1, 3, 4, 9, 1023}) odd.set(core);
  CoreSet other = odd;
  other.set(20);
  const std::vector<NodeRecord> all{
      record(1, odd, {}),   record(1, odd, {}), record(2, odd, {}), record(1, cores(1022, 2), {}),
      record(1, other, {}), record(1, {}, {}),  record(1, {}, {})};
  EXPECT_EQ(expect_all_know(all), all.size() * kBriefBytes + 4 * sizeof(NodeRecord))
      << "node 1: odd, other, none; node 2";
}

TEST(NodeRecords, ThoseThatDifferOnANodeSaySo) {
  std::vector<NodeRecord> all(6, record(7, cores(0, 1), cores(0, 4)));
  all[2].has_dpu = true;
  all[3].allowed.set(9);
  strncpy(all[4].host.data(), "another", all[4].host.size() - 1);
  EXPECT_EQ(expect_all_know(all), all.size() * kBriefBytes + 4 * sizeof(NodeRecord));
}

TEST(NodeRecords, AreThoseThatWereTold) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<NodeRecord> all;
    for (size_t count = 1 + random() % 12; all.size() < count;) {
      CoreSet bound = cores(random() % 1000, 1 + random() % 24);
      for (size_t more = random() % 4; more > 0; --more) bound.set(random() % 1024);
      all.push_back(record(random() % 3, bound, random() % 2 == 0 ? CoreSet() : cores(0, 1024)));
      all.back().has_dpu = random() % 4 == 0;
    }
    expect_all_know(all);
    expect_same(NodeRecords(all), all);
  }
}

}  // namespace
}  // namespace offpath::attach
