// SPDX-License-Identifier: BSD-3-Clause
#include "attach/nodes.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

namespace offpath::attach {
namespace {

NodeRecord record(uint64_t key, const char* host, size_t core, size_t core_count) {
  NodeRecord record{};
  record.key = key;
  strncpy(record.host.data(), host, record.host.size() - 1);
  record.bound.set(core);
  for (size_t i = 0; i < core_count; ++i) record.allowed.set(i);
  return record;
}

const std::vector<NodeRecord> kTwoNodes = {record(77, "a", 0, 4), record(5, "b", 0, 2), record(77, "a", 1, 4)};

TEST(Nodes, AreNumberedInTheOrderOfTheirFirstProcesses) {
  const Nodes nodes(kTwoNodes);
  EXPECT_EQ(nodes.count(), 2u);
  EXPECT_EQ(nodes.of(0), 0u);
  EXPECT_EQ(nodes.of(1), 1u);
  EXPECT_EQ(nodes.of(2), 0u);
  EXPECT_TRUE(nodes.leads(0) && nodes.leads(1));
  EXPECT_FALSE(nodes.leads(2));
}

TEST(Nodes, TheServiceGetsWhatTheProcessesOfItsNodeLeave) {
  const Nodes nodes(kTwoNodes);
  for (const auto& [rank, list] : {std::pair{0, "2,3"}, {1, "1"}, {2, "2,3"}}) {
    const auto cores = choose_cores(Terms{}, Settings{}, kTwoNodes, nodes, rank, "ranks");
    ASSERT_TRUE(cores.ok());
    EXPECT_EQ(cores.value().list, list);
    EXPECT_TRUE(cores.value().spare);
  }
}

TEST(Nodes, OneNodeWithoutSpareCoresStopsAll) {
  std::vector<NodeRecord> records = kTwoNodes;
  records[1] = record(5, "full", 0, 1);
  Terms terms{};
  const auto none = choose_cores(terms, Settings{}, records, Nodes(records), 0, "PEs");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(strstr(none.status().text(), "no spare core on host full for the service (its PEs use"), nullptr);
  terms.share_cores = 1;
  const auto shared = choose_cores(terms, Settings{}, records, Nodes(records), 1, "PEs");
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(shared.value().list, "0");
  EXPECT_FALSE(shared.value().spare);
}

TEST(Nodes, AnAgentTakesTheCoresOfItsNodesProcessesAndNoOtherNodesServiceDoes) {
  std::vector<NodeRecord> records = kTwoNodes;
  records[1] = record(5, "full", 0, 1);
  records[1].has_dpu = true;
  for (const auto& [rank, list, spare] : {std::tuple{0, "2,3", true}, {1, "0", false}}) {
    const auto cores = choose_cores(Terms{}, Settings{}, records, Nodes(records), rank, "ranks");
    ASSERT_TRUE(cores.ok()) << cores.status().text();
    EXPECT_EQ(cores.value().list, list);
    EXPECT_EQ(cores.value().spare, spare);
  }
  records.push_back(record(9, "other", 0, 1));
  const auto none = choose_cores(Terms{}, Settings{}, records, Nodes(records), 1, "ranks");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(strstr(none.status().text(), "no spare core on host other"), nullptr);
}

TEST(Nodes, CoresGivenByHandAreTakenAsTheyAre) {
  Terms terms{};
  Settings settings;
  settings.service_cores = "7";
  terms.propose(settings);
  const auto cores = choose_cores(terms, settings, kTwoNodes, Nodes(kTwoNodes), 0, "ranks");
  ASSERT_TRUE(cores.ok());
  EXPECT_EQ(cores.value().list, "7");
  EXPECT_TRUE(cores.value().spare);
}

// As the ranks wait, and what pays, depend on that.
TEST(Nodes, CoresGivenByHandAreSpareWhereNobodyIsBoundToThem) {
  std::vector<NodeRecord> unbound = {record(5, "b", 0, 4), record(5, "b", 0, 4)};
  for (NodeRecord& each : unbound) each.bound = each.allowed;
  const auto is_spare = [](const char* list, const std::vector<NodeRecord>& records, bool shares = false) {
    Terms terms{};
    Settings settings;
    settings.service_cores = list;
    settings.share_cores = shares;
    terms.propose(settings);
    return choose_cores(terms, settings, records, Nodes(records), 0, "ranks").value().spare;
  };
  EXPECT_TRUE(is_spare("2-3", kTwoNodes));
  EXPECT_FALSE(is_spare("1-2", kTwoNodes));  // a rank's
  EXPECT_FALSE(is_spare("2", kTwoNodes, true));
  EXPECT_TRUE(is_spare("2,3", unbound));
  EXPECT_FALSE(is_spare("1", unbound));
  EXPECT_FALSE(is_spare("nonsense", kTwoNodes));
}

}  // namespace
}  // namespace offpath::attach
