// SPDX-License-Identifier: BSD-3-Clause
// Joining a job without one: the other processes are a script.
#include "attach/joining.hpp"
#include "attach/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

namespace offpath::attach {
namespace {

// All processes say what this one says, but for what the script changes in the n-th exchange.
class Scripted final : public Exchange {
 public:
  using Script = std::function<bool(int exchange, std::byte* all, size_t bytes)>;
  Scripted(int rank, int size, Script script) : Exchange(rank, size, "no exchange"), script_(std::move(script)) {}

 private:
  bool broadcast_bytes(void*, size_t) const override { return true; }
  bool gather_bytes(const void* record, size_t bytes, void* all) const override {
    auto* const to = static_cast<std::byte*>(all);
    for (int rank = 0; rank < size(); ++rank) memcpy(to + bytes * static_cast<size_t>(rank), record, bytes);
    return script_(exchanges_++, to, bytes);
  }
  bool gather_parts(const void* own, const Parts& parts, void* all) const override {
    for (size_t i = 0; i < parts.bytes.size(); ++i) {
      memcpy(static_cast<std::byte*>(all) + parts.begins[i], own, static_cast<size_t>(parts.bytes[i]));
    }
    return script_(exchanges_++, static_cast<std::byte*>(all), 0);
  }

  Script script_;
  mutable int exchanges_ = 0;
};

bool alike(int, std::byte*, size_t) { return true; }

// The same processes, all bound to the one core that there is.
NodeRecords on_one_core(const NodeRecords& records) {
  std::vector<NodeRecord> there;
  for (size_t process = 0; process < records.size(); ++process) there.push_back(records[process]);
  for (NodeRecord& record : there) record.allowed = record.bound = base::CoreSet{}.set(0);
  return there;
}

TEST(Joining, WhereNoCoreIsSpareNobodyAttaches) {
  Membership member("PE");
  const Scripted job(1, 3, alike);
  NodeRecords records;
  ASSERT_TRUE(member.meet(job, &records));
  EXPECT_EQ(member.nodes().count(), 1u);
  const std::string problem = member.choose_cores({}, {}, on_one_core(records));
  EXPECT_NE(problem.find("no spare core"), std::string::npos) << problem;
  EXPECT_NE(problem.find("(its PEs use them all)"), std::string::npos) << problem;
  Directory members;
  EXPECT_EQ(member.attach({}, job, &members), "PE 0 could not attach to its service: " + problem);
  EXPECT_EQ(member.session(), nullptr);
}

TEST(Joining, AnExchangeThatFailsSaysWhy) {
  Membership member("rank");
  const Scripted job(0, 2, [](int, std::byte*, size_t) { return false; });
  NodeRecords records;
  EXPECT_FALSE(member.meet(job, &records));
  const Scripted alone(0, 1, alike);
  ASSERT_TRUE(member.meet(alone, &records));
  ASSERT_NE(member.choose_cores({}, {}, on_one_core(records)), "");
  Directory members;
  EXPECT_EQ(member.attach({}, job, &members), "no exchange");
}

// As all see all addresses, all decide alike.
TEST(Joining, NodesWithDifferentSecretsStayNative) {
  for (const int rank : {0, 1}) {
    Membership member("rank");
    // They say where they are, one of each node more of it, then who serves them, and then their addresses.
    const Scripted job(rank, 2, [](int exchange, std::byte* all, size_t bytes) {
      constexpr uint32_t kBytes = 40;
      if (exchange == 2) {
        memset(all, 0, 2 * bytes);
        all[bytes] = std::byte{1};  // of another worker
        for (const size_t report : {bytes, 2 * bytes}) memcpy(all + report - sizeof(kBytes), &kBytes, sizeof(kBytes));
      }
      if (exchange == 3) {
        memset(all, 0, size_t{2} * kBytes);
        all[kBytes] = std::byte{1};  // the second one's name of the job
      }
      return true;
    });
    NodeRecords records;
    ASSERT_TRUE(member.meet(job, &records));
    ASSERT_NE(member.choose_cores({}, {}, on_one_core(records)), "");
    Directory members;
    const std::string problem = member.attach({}, job, &members);
    EXPECT_NE(problem.find("do not know the same secret"), std::string::npos) << problem;
  }
}

TEST(Directory, HoldsEachAddressOnce) {
  const auto address = [](uint8_t first, uint32_t bytes) {
    Address made;
    made.bytes = bytes;
    made.data[0] = std::byte{first};
    made.data[bytes - 1] = std::byte{0xEE};
    return made;
  };
  const std::vector<Address> all{address(3, 24), address(1, 40), address(3, 24), address(2, 30), address(1, 40)};
  const Directory directory(all);
  ASSERT_EQ(directory.size(), 5u);
  ASSERT_EQ(directory.addresses_count(), 3u);
  EXPECT_EQ(directory.stride_bytes(), 40u);
  const auto is_there = [&](const Directory& there, size_t process, size_t expected) {
    const auto found = there.address(there.number_of()[process]);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), all[expected].data.begin())) << process << " " << expected;
  };
  for (size_t process = 0; process < all.size(); ++process) is_there(directory, process, process);
  const Directory some = directory.of(std::vector<int>{4, 3, 1});
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(some.addresses_count(), 2u);
  is_there(some, 0, 4);
  is_there(some, 1, 3);
  is_there(some, 2, 1);
  EXPECT_TRUE(Directory().empty());
  EXPECT_EQ(Directory().addresses_count(), 0u);
}

TEST(Joining, LinesAreAppendedByTheFirstWhoCanDoItBest) {
  const std::string path = ::testing::TempDir() + "/joining_statistics";
  remove(path.c_str());
  Settings settings;
  settings.stats_file = path;
  const auto claims = [](uint64_t first, uint64_t second, uint64_t third) {
    return [=](int exchange, std::byte* all, size_t) {
      const uint64_t said[] = {first, second, third};
      if (exchange == 0) memcpy(all, said, sizeof(said));
      return true;
    };
  };
  JsonObject line;
  line.number("rank", 7);
  write_statistics(Scripted(0, 3, claims(1, 2, 2)), settings, line);
  write_statistics(Scripted(2, 3, claims(1, 2, 2)), settings, line);
  write_statistics(Scripted(1, 3, claims(0, 0, 0)), settings, line);
  EXPECT_FALSE(std::ifstream(path).good());
  write_statistics(Scripted(1, 3, claims(1, 2, 2)), settings, line);
  JsonObject too_long;
  too_long.text("text", std::string(4000, 'x'));
  write_statistics(Scripted(1, 3, claims(1, 2, 2)), settings, too_long);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, "{\"rank\":7}\n{\"rank\":7}\n{\"rank\":7}\n");
}

}  // namespace
}  // namespace offpath::attach
