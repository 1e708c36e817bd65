// SPDX-License-Identifier: BSD-3-Clause
#include "engine/core/roster.hpp"

#include <gtest/gtest.h>

namespace offpath::engine {
namespace {

using Numbers = std::vector<uint32_t>;

TEST(Roster, HasEachWorkerOnceInTheOrderOfItsMembers) {
  const WorkerAddress here{true, 1, {}}, there{false, 0, {7, 8}};
  const Roster roster{there, here, there, there, here};
  EXPECT_EQ(roster.size(), 5u);
  EXPECT_EQ(roster.workers(), (std::vector<WorkerAddress>{there, here}));
  EXPECT_EQ(roster.worker_of(), (Numbers{0, 1, 0, 0, 1}));
  EXPECT_EQ(roster[4], here);
  EXPECT_EQ(Roster().size(), 0u);
  EXPECT_TRUE(Roster().workers().empty());
}

// Two workers of this service differ by their number, those of others by their address.
TEST(Roster, TellsWorkersApart) {
  const Roster roster{{true, 0, {}}, {true, 1, {}}, {false, 0, {1}}, {false, 3, {1}}, {false, 0, {2}}, {true, 0, {9}}};
  EXPECT_EQ(roster.worker_of(), (Numbers{0, 1, 2, 2, 3, 0}));
}

// What a client says may hold anything.
TEST(Roster, LeavesOutWhatIsThereTwiceOrInVain) {
  const std::vector<WorkerAddress> workers{{false, 0, {5}}, {false, 0, {1}}, {true, 0, {}}, {false, 0, {1}}};
  const Numbers worker_of{3, 2, 1};
  const Roster roster(workers, worker_of);
  EXPECT_EQ(roster.workers().size(), 2u);
  EXPECT_EQ(roster.worker_of(), (Numbers{0, 1, 0}));
  EXPECT_EQ(roster, (Roster{{false, 0, {1}}, {true, 0, {}}, {false, 0, {1}}}));
  EXPECT_NE(roster, (Roster{{false, 0, {1}}, {true, 0, {}}, {true, 0, {}}}));
}

TEST(Roster, SharesWhatIsTheSame) {
  const WorkerAddress here{true, 1, {}}, there{false, 0, {7, 8}};
  const Roster one{there, here};
  Roster same{there, here}, more{there, here, here}, another{here, there};
  EXPECT_TRUE(same.share(one));
  EXPECT_EQ(&same.workers(), &one.workers());
  EXPECT_FALSE(more.share(one));
  EXPECT_EQ(&more.workers(), &one.workers());
  EXPECT_EQ(more, (Roster{there, here, here}));
  EXPECT_FALSE(another.share(one));
  EXPECT_EQ(another, (Roster{here, there}));
}

}  // namespace
}  // namespace offpath::engine
