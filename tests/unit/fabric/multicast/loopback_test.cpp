// SPDX-License-Identifier: BSD-3-Clause
// Emulated groups: each fault does what it says, the same seed does the same, and task after task ends right over all of them.
#include "fabric/loopback/groups.hpp"

#include "task_run.hpp"

#include <gtest/gtest.h>

namespace offpath::fabric {
namespace {

std::vector<std::unique_ptr<Group>> join(LoopbackGroups& network, uint32_t members, uint64_t team = 1) {
  std::vector<std::unique_ptr<Group>> groups;
  for (uint32_t own = 0; own < members; ++own) groups.push_back(network.join(team, own, 16));
  return groups;
}

TEST(LoopbackGroup, BringsEachChunkOnceWithoutFaults) {
  LoopbackGroups network(1, {});
  const auto groups = join(network, 4), others = join(network, 4, 2);
  const auto result = offpath::testing::run_task(groups, 7, 100);
  EXPECT_TRUE(result.right);
  EXPECT_EQ(result.repaired, 0u);
  for (const auto& group : groups) EXPECT_EQ(group->counts().received, 300u);
  for (const auto& group : others) EXPECT_EQ(group->counts().received, 0u);
}

TEST(LoopbackGroup, EveryFaultIsRepaired) {
  const GroupFaults kinds[] = {
      {.lost = .1},      {.lost_for_all = .1},
      {.lost = 1},       {.doubled = .5},
      {.overtaken = .5}, {.stale = .5},
      {.room = 20},      {.lost = .2, .lost_for_all = .1, .doubled = .2, .overtaken = .3, .stale = .3, .room = 100}};
  for (const GroupFaults& faults : kinds) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      LoopbackGroups network(seed, faults);
      const auto groups = join(network, 3 + static_cast<uint32_t>(seed));
      for (uint64_t task = 1; task < 5; ++task) {  // so there are stale ones of those before
        const auto result = offpath::testing::run_task(groups, task, 60);
        EXPECT_TRUE(result.right) << &faults - kinds << " seed " << seed << " task " << task;
        const bool loses = faults.lost > 0 || faults.lost_for_all > 0 || faults.room > 0;
        EXPECT_TRUE(!loses || result.repaired > 0) << &faults - kinds;
        EXPECT_TRUE(faults.lost < 1 || result.heard == 0);
      }
    }
  }
}

TEST(LoopbackGroup, DoesTheSameWithTheSameSeed) {
  const auto run = [](uint64_t seed) {
    LoopbackGroups network(seed, {.lost = .3, .doubled = .2, .overtaken = .3, .stale = .3});
    return offpath::testing::run_task(join(network, 5), 1, 80).repaired;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

// A switch that stops forwarding, and begins again.
TEST(LoopbackGroup, MayStopWorkingAndBeginAgain) {
  LoopbackGroups network(1, {});
  const auto groups = join(network, 4);
  EXPECT_EQ(offpath::testing::run_task(groups, 1, 50).repaired, 0u);
  network.set_faults({.lost = 1});
  const auto ring = offpath::testing::run_task(groups, 2, 50);
  EXPECT_TRUE(ring.right);
  EXPECT_EQ(ring.repaired, 4u * 3 * 50);
  network.set_faults({});
  EXPECT_EQ(offpath::testing::run_task(groups, 3, 50).repaired, 0u);
}

}  // namespace
}  // namespace offpath::fabric
