// SPDX-License-Identifier: BSD-3-Clause
#include "client/address_tables.hpp"

#include "session/member_address.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace offpath::client {
namespace {

// As a service of the job makes it.
std::vector<uint8_t> address(uint8_t service, uint32_t worker, size_t fabric_bytes = 10) {
  session::MemberAddress made;
  made.service.fill(service);
  memset(made.service.data(), 1, session::kJobNameBytes);
  made.worker = worker;
  made.fabric.assign(fabric_bytes, service);
  return made.encode().value();
}

class Members {
 public:
  explicit Members(const std::vector<std::vector<uint8_t>>& addresses) : count_(addresses.size()) {
    directory.count = static_cast<uint32_t>(addresses.size());
    directory.stride_bytes = 100;
    table_.resize(addresses.size() * 100);
    for (size_t i = 0; i < addresses.size(); ++i) memcpy(&table_[i * 100], addresses[i].data(), addresses[i].size());
    directory.addresses = table_.data();
  }
  void number(std::vector<uint32_t> numbers) {
    numbers_ = std::move(numbers);
    count_ = numbers_.size();
    directory.number_of = numbers_.data();
  }
  base::Result<CompactAddresses> compacted() const { return compact(directory, static_cast<uint32_t>(count_)); }
  offpath_directory_t directory{};

 private:
  size_t count_;
  std::vector<uint8_t> table_;
  std::vector<uint32_t> numbers_;
};

TEST(AddressTables, TakeNoMoreThanTheMembersNeed) {
  Members members({address(1, 0), address(1, 1), address(1, 0), address(2, 0, 20), address(1, 1)});
  const auto out = members.compacted();
  ASSERT_TRUE(out.ok()) << out.status().text();
  EXPECT_EQ(out->nodes, 2u);
  EXPECT_EQ(out->count(), 3u);
  EXPECT_EQ(out->stride, 44u);
  EXPECT_EQ(out->number_of, (std::vector<uint32_t>{0, 1, 0, 2, 1}));
  EXPECT_EQ(session::MemberAddress::decode(std::span(out->table).last(44)).value().fabric.size(), 20u);
}

TEST(AddressTables, ANumberedOneIsTheSame) {
  Members members({address(3, 0), address(2, 0, 20), address(1, 1), address(1, 0), address(1, 0)});
  members.number({3, 2, 4, 1, 2});
  const auto out = members.compacted();
  ASSERT_TRUE(out.ok()) << out.status().text();
  const auto same =
      Members({address(1, 0), address(1, 1), address(1, 0), address(2, 0, 20), address(1, 1)}).compacted();
  EXPECT_EQ(out->table, same->table);
  EXPECT_EQ(out->number_of, same->number_of);
  EXPECT_EQ(out->nodes, 2u);
}

TEST(AddressTables, NonsenseIsRefused) {
  Members members({address(1, 0), address(1, 1)});
  members.number({0, 2});
  EXPECT_EQ(members.compacted().status().code(), OFFPATH_ERR_ARGUMENT);
  Members cut({address(1, 0)});
  cut.directory.stride_bytes = 30;
  EXPECT_EQ(cut.compacted().status().code(), OFFPATH_ERR_ARGUMENT);
  auto stranger = address(1, 0);
  stranger[0] = 9;
  EXPECT_EQ(Members({address(1, 0), stranger}).compacted().status().code(), OFFPATH_ERR_PERMISSION);
}

TEST(AddressTables, TeamsShareThem) {
  std::vector<uint8_t> segment(1 << 16);
  Arena arena(1 << 12, segment.size());
  AddressTables tables;
  const std::vector<uint8_t> one(30000, 1), other(30000, 2), short_one(100, 1);
  const uint64_t first = tables.take(arena, segment.data(), one);
  ASSERT_NE(first, 0u);
  EXPECT_EQ(memcmp(segment.data() + first, one.data(), one.size()), 0);
  for (int team = 0; team < 100; ++team) EXPECT_EQ(tables.take(arena, segment.data(), one), first);
  EXPECT_EQ(tables.take(arena, segment.data(), other), 0u) << "there is no room for two";
  EXPECT_NE(tables.take(arena, segment.data(), short_one), 0u);
  for (int team = 0; team < 101; ++team) {
    EXPECT_EQ(tables.take(arena, segment.data(), other), 0u);
    tables.release(arena, first);
  }
  EXPECT_NE(tables.take(arena, segment.data(), other), 0u);
}

}  // namespace
}  // namespace offpath::client
