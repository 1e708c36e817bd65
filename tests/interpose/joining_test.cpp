// SPDX-License-Identifier: BSD-3-Clause
// Joining a job without one: the other processes are a script.
#include "attach/joining.hpp"
#include "attach/statistics.hpp"

#include <gtest/gtest.h>

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

  Script script_;
  mutable int exchanges_ = 0;
};

bool alike(int, std::byte*, size_t) { return true; }

TEST(Joining, WhereNoCoreIsSpareNobodyAttaches) {
  Membership member("PE");
  const Scripted job(1, 3, alike);
  std::vector<NodeRecord> records;
  ASSERT_TRUE(member.meet(job, &records));
  EXPECT_EQ(member.nodes().count(), 1u);
  for (NodeRecord& record : records) record.allowed = record.bound = base::CoreSet{}.set(0);
  const std::string problem = member.choose_cores({}, {}, records);
  EXPECT_NE(problem.find("no spare core"), std::string::npos) << problem;
  EXPECT_NE(problem.find("(its PEs use them all)"), std::string::npos) << problem;
  std::vector<Address> addresses;
  EXPECT_EQ(member.attach({}, job, &addresses), "PE 0 could not attach to its service: " + problem);
  EXPECT_EQ(member.session(), nullptr);
}

TEST(Joining, AnExchangeThatFailsSaysWhy) {
  Membership member("rank");
  const Scripted job(0, 2, [](int, std::byte*, size_t) { return false; });
  std::vector<NodeRecord> records;
  EXPECT_FALSE(member.meet(job, &records));
  const Scripted alone(0, 1, alike);
  ASSERT_TRUE(member.meet(alone, &records));
  records[0].allowed = records[0].bound = base::CoreSet{}.set(0);
  ASSERT_NE(member.choose_cores({}, {}, records), "");
  std::vector<Address> addresses;
  EXPECT_EQ(member.attach({}, job, &addresses), "no exchange");
}

// As all see all addresses, all decide alike.
TEST(Joining, NodesWithDifferentSecretsStayNative) {
  for (const int rank : {0, 1}) {
    Membership member("rank");
    const Scripted job(rank, 2, [](int exchange, std::byte* all, size_t bytes) {
      if (exchange == 0) return true;
      Attachment second{};
      second.address[0] = std::byte{1};
      memset(all, 0, bytes);  // the first one's name of the job
      memcpy(all + bytes, &second, sizeof(second));
      return true;
    });
    std::vector<NodeRecord> records;
    ASSERT_TRUE(member.meet(job, &records));
    for (NodeRecord& record : records) record.allowed = record.bound = base::CoreSet{}.set(0);
    ASSERT_NE(member.choose_cores({}, {}, records), "");
    std::vector<Address> addresses;
    const std::string problem = member.attach({}, job, &addresses);
    EXPECT_NE(problem.find("do not know the same secret"), std::string::npos) << problem;
  }
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
