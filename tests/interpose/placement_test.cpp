// SPDX-License-Identifier: BSD-3-Clause
#include "base/placement.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace offpath::base {
namespace {

CoreSet cores(std::initializer_list<size_t> list) {
  CoreSet set;
  for (const size_t core : list) set.set(core);
  return set;
}

std::string place(std::vector<CoreSet> masks, CoreSet allowed, Sharing sharing = Sharing::forbidden) {
  const Placement placement = place_service(masks, allowed, sharing);
  return (placement.shared ? "shared " : "") + core_list(placement.cores);
}

TEST(Placement, TheLaunchersCoresAreTheJobsUnlessTheSchedulerHasGivenItFewer) {
  const CoreSet own = cores({0}), machine = cores({0, 1, 2, 3}), step = cores({0, 1});
  EXPECT_EQ(allowed_cores(own, machine, 4, 0), machine);
  EXPECT_EQ(allowed_cores(own, machine, 4, 4), machine);
  EXPECT_EQ(allowed_cores(own, machine, 4, 1), own);  // Slurm without control groups: the daemon is not bound
  EXPECT_EQ(allowed_cores(own, machine, 4, 3), own);
  EXPECT_EQ(allowed_cores(own, step, 4, 1), step);  // a core that is counted once and has two threads
}

TEST(Placement, SpareCoresAreThoseOfNoBoundRank) {
  EXPECT_EQ(place({cores({0}), cores({1})}, cores({0, 1, 2, 3})), "2,3");
  EXPECT_EQ(place({cores({1, 2})}, cores({0, 1, 2, 3})), "0,3");
}

TEST(Placement, UnboundRanksTakeOneCoreEachFromTheFirstOn) {
  const CoreSet all = cores({0, 1, 2, 3});
  EXPECT_EQ(place({all, all}, all), "2,3");
  EXPECT_EQ(place({all, all, all, all}, all), "");
  EXPECT_EQ(place({all, all, all, all, all}, all), "");
  EXPECT_EQ(place({cores({0}), all}, all), "2,3");
}

TEST(Placement, AllUsedNeedsSharing) {
  const CoreSet all = cores({0, 1});
  EXPECT_EQ(place({cores({0}), cores({1})}, all), "");
  EXPECT_EQ(place({cores({0}), cores({1})}, all, Sharing::allowed), "shared 0,1");
  EXPECT_EQ(place({cores({1})}, cores({1}), Sharing::allowed), "shared 1");
  EXPECT_EQ(place({all, all}, all, Sharing::allowed), "shared 0,1");
}

TEST(Placement, SharingIsNotUsedWhileCoresAreSpare) {
  EXPECT_EQ(place({cores({0})}, cores({0, 1}), Sharing::allowed), "1");
}

TEST(Placement, MasksOutsideTheAllowedSetCount) {
  EXPECT_EQ(place({cores({5})}, cores({0, 1})), "0,1");
  EXPECT_EQ(place({}, cores({0, 1})), "0,1");
}

TEST(Placement, LargestCore) { EXPECT_EQ(place({cores({0})}, cores({0, kMaxCores - 1})), "1023"); }

}  // namespace
}  // namespace offpath::base
